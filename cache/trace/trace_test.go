package trace_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"rankfs/cache/trace"
	"rankfs/cache/trace/tracetest"
)

func traceOf(steps uint64, opened ...uint64) *trace.Trace {
	t := &trace.Trace{View: "d@batch=chunk", Steps: steps}
	for _, s := range opened {
		t.Add(s)
	}
	return t
}

// What was opened is told exactly, as the latest opens if there were too many.
func TestTraceIsWhatWasOpened(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, steps := range []uint64{1, 7, 64, 1 << 20} {
		tr := trace.Trace{Steps: steps}
		var all []uint64
		for len(all) < 40_000 {
			first, stride := r.Uint64N(steps), r.Uint64N(5)
			for s := first; s < steps && s-first < 20; s += stride + 1 {
				all = append(all, s)
				tr.Add(s)
			}
		}
		got := slices.Collect(tr.All())
		if tr.Forgotten+uint64(len(got)) != uint64(len(all)) || !slices.Equal(got, all[tr.Forgotten:]) {
			t.Errorf("of %d opens of %d steps %d are forgotten and %d are told, and these are others", len(all), steps, tr.Forgotten, len(got))
		}
		if len(tr.Runs) > trace.MaxRuns || len(tr.Runs) == 0 {
			t.Errorf("%d runs", len(tr.Runs))
		}
	}
}

// An epoch in order costs one run, however often it is read.
func TestOrderCostsLittle(t *testing.T) {
	tr := trace.Trace{Steps: 1000}
	for range 100 {
		for s := range uint64(1000) {
			tr.Add(s)
		}
	}
	if len(tr.Runs) > 110 || tr.Opens() != 100_000 {
		t.Errorf("%d opens in %d runs", tr.Opens(), len(tr.Runs))
	}
}

// The text is golden: files of it are kept.
func TestText(t *testing.T) {
	tr := traceOf(10, 0, 3, 6, 9, 1, 4, 7, 2, 5, 8, 0, 3, 6, 9, 8, 8)
	tr.Rank, tr.Forgotten = 2, 5
	const want = `rankfs trace 1
view d@batch=chunk
rank 2
steps 10
forgotten 5
# 16 opens in 5 runs
# next +3: 10 of 15
# next -8: 2 of 15
# next -5: 1 of 15
# next -1: 1 of 15
# next +0: 1 of 15
# again after 1.00 of the steps: 4
# again after 0.10 of the steps: 1
# again after 0.50 of the steps: 1
run 0 +3 4
run 1 +3 3
run 2 +3 3
run 0 +3 4
run 8 +0 2
`
	if got := tr.Text(true); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	read, err := trace.Parse(want + "\n" + traceOf(3, 1).Text(true))
	if err != nil || read.Text(true) != want {
		t.Errorf("read %+v, %v", read, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "rankfs trace 2\n", "rankfs trace 1\n",
		"rankfs trace 1\nsteps 5\n",
		"rankfs trace 1\nrun 0 +1 1\n",
		"rankfs trace 1\nsteps 5\nrun 0 +1 6\n",
		"rankfs trace 1\nsteps 5\nrun 0 -1 2\n",
		"rankfs trace 1\nsteps 5\nrun 5 +0 1\n",
		"rankfs trace 1\nsteps 5\nrun 0 +0 0\n",
		"rankfs trace 1\nsteps 5\nrun 0 +0 99999999999999\n",
		"rankfs trace 1\nsteps 5\nrun 0 +9223372036854775807 3\n",
		"rankfs trace 1\nsteps 5\nrun 0\n",
		"rankfs trace 1\nsteps x\nrun 0 +0 1\n",
		"rankfs trace 1\nsteps 9999999999999\nrun 0 +0 1\n",
		"rankfs trace 1\nsteps 5\n" + strings.Repeat("run 0 +0 1\n", trace.MaxRuns+1),
	} {
		if got, err := trace.Parse(text); err == nil {
			t.Errorf("%.60q is read as %+v", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(traceOf(10, 0, 3, 6, 9, 1, 4, 7, 2, 5, 8, 0).Text(true))
	f.Add("rankfs trace 1\nsteps 5\nrun 0 +1 5\nrun 4 -1 5\n")
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := trace.Parse(text)
		if err != nil || tr.Opens() > 1<<16 {
			return
		}
		for s := range tr.All() {
			if s >= tr.Steps {
				t.Fatalf("step %d of %d", s, tr.Steps)
			}
		}
	})
}

// A trace of a few steps stands for one of many, and the reverse, in as many
// passes.
func TestScaled(t *testing.T) {
	tr := traceOf(4, 0, 2, 1, 3, 0, 2)
	for _, test := range []struct {
		steps uint64
		want  [][]uint32
	}{
		{4, [][]uint32{{0, 2, 1, 3}, {0, 2}}},
		{8, [][]uint32{{0, 1, 4, 5, 2, 3, 6, 7}, {0, 1, 4, 5}}},
		{2, [][]uint32{{0, 1}, {0, 1}}},
		{1, [][]uint32{{0}, {0}}},
		{6, [][]uint32{{0, 1, 3, 4, 2, 5}, {0, 1, 3, 4}}},
	} {
		if got := tr.Passes(test.steps); !slices.EqualFunc(got, test.want, slices.Equal) {
			t.Errorf("as of %d steps: %v, want %v", test.steps, got, test.want)
		}
	}
	if got := traceOf(7, tracetest.Strided(7, 3)...).Moves(); got[0] != (trace.Move{By: 3, Times: 4}) || len(got) != 3 {
		t.Errorf("moves %v", got)
	}
}

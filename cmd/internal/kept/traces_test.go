package kept

import (
	"strings"
	"testing"

	"rankfs/cache"
	"rankfs/cache/trace"
)

// The file is golden: programs read it.
func TestTracesText(t *testing.T) {
	odd, idle := cache.Traced{Series: [16]byte{1}}, cache.Traced{Series: [16]byte{2}}
	odd.Rank, odd.Steps, idle.Steps = 3, 6, 4
	for _, step := range []uint64{0, 2, 4, 1, 3, 5, 0} {
		odd.Add(step)
	}
	idle.Add(0)
	view := func(series [16]byte) string {
		return map[[16]byte]string{{1}: "d@epoch=0,ranks=4,seed=0,order=none,step=8,tail=keep,assign=local"}[series]
	}
	const want = `rankfs trace 1
view d@epoch=0,ranks=4,seed=0,order=none,step=8,tail=keep,assign=local
rank 3
steps 6
forgotten 0
# 7 opens in 3 runs
# next +2: 4 of 6
# next -5: 1 of 6
# next -3: 1 of 6
# again after 1.00 of the steps: 1
run 0 +2 3
run 1 +2 3
run 0 +0 1

rankfs trace 1
view unknown-02000000
rank 0
steps 4
forgotten 0
# 1 opens in 1 runs
run 0 +0 1
`
	if got := string(tracesText([]cache.Traced{odd, idle}, view)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := string(tracesText(nil, view)); got != "# no batch was opened since the mount\n" {
		t.Errorf("nothing is told as %q", got)
	}
}

// Many long traces are told as far as there is room, and how many are not.
func TestManyTraces(t *testing.T) {
	long := cache.Traced{}
	long.Steps = 1 << 30
	for i := range uint64(trace.MaxRuns) {
		long.Runs = append(long.Runs, trace.Run{First: i * 7919 % long.Steps, Count: 1})
	}
	all := make([]cache.Traced, 100)
	for i := range all {
		all[i] = long
	}
	text := string(tracesText(all, func([16]byte) string { return "d" }))
	told := strings.Count(text, "rankfs trace 1\n")
	if len(text) > trace.MaxText+100 || told < 5 || !strings.Contains(text, "\n# readers left out for their number: ") {
		t.Errorf("%d bytes of %d readers, at the end %q", len(text), told, text[len(text)-60:])
	}
	if _, err := trace.Parse(text); err != nil {
		t.Errorf("the first of them: %v", err)
	}
}

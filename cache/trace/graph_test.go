package trace_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"rankfs/cache/trace"
	"rankfs/cache/trace/tracetest"
)

// What was learnt on 64 steps foretells when each of 4096 is opened again.
func TestLearntSmallUsedLarge(t *testing.T) {
	for name, order := range tracetest.Ways {
		t.Run(name, func(t *testing.T) {
			const steps = 4096
			g := traceOf(64, order(64, 4)...).Graph()
			all := order(steps, 3)
			next, last := make([]uint64, len(all)), map[uint64]uint64{}
			for i := len(all) - 1; i >= 0; i-- {
				next[i], last[all[i]] = last[all[i]], uint64(i)
			}
			clear(last)
			right, wrong, unknown := 0, 0, 0
			for i, s := range all {
				before := uint64(0)
				if was, again := last[s]; again {
					before = uint64(i) - was
				}
				last[s] = uint64(i)
				after, sure, known := g.After(s, steps, before)
				switch real := float64(next[i]) - float64(i); {
				case next[i] == 0 && len(all)-i < 2*steps: // the trace ends before it shows
				case !known || !sure:
					unknown++
				case next[i] == 0 && math.IsInf(after, 1), next[i] > 0 && math.Abs(after-real) <= real/8+steps/16:
					right++
				default:
					wrong++
				}
			}
			t.Logf("%d right, %d wrong, %d not sure", right, wrong, unknown)
			if wrong > right/50 || unknown > right/8 || right < steps {
				t.Errorf("of %d uses the next was known of %d, of %d another and of %d not for sure", len(all), right, wrong, unknown)
			}
		})
	}
}

// Of what was opened at random nothing is learnt that would be believed, nor of
// what was opened once.
func TestNothingToLearn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var opened []uint64
	for range 4000 {
		opened = append(opened, r.Uint64N(64))
	}
	g, known := traceOf(64, opened...).Graph(), 0
	for s := range uint64(64) {
		if _, _, is := g.After(s, 64, 40); is {
			known++
		}
	}
	if known > 16 {
		t.Errorf("of %d of 64 steps that were opened at random it is known when they will be again", known)
	}
	if g := traceOf(64, tracetest.Strided(64, 5)...).Graph(); g != nil || len(g.Reuses()) != 0 {
		t.Errorf("of one pass it is learnt that %v", g.Reuses())
	}
}

// A graph is bounded, whatever was opened.
func TestGraphIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tr := trace.Trace{Steps: 1 << 12}
	for range 1 << 13 {
		tr.Add(r.Uint64N(1 << 12))
	}
	if n := len(tr.Graph().Reuses()); n > 32*16 {
		t.Errorf("%d edges", n)
	}
	if got := traceOf(4, slices.Repeat([]uint64{0, 1, 2, 3}, 3)...).Graph().Reuses(); len(got) != 1 || got[0] != (trace.Reuse{After: 1, Times: 8}) {
		t.Errorf("reuses %v", got)
	}
}

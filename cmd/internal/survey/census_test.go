package survey

import (
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta"
)

// However long an epoch is, a bounded part of it is looked at, all over it.
func TestSample(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := meta.Cut{
			N: rapid.Uint64Range(0, 1<<50).Draw(r, "positions"), Global: rapid.Uint64Range(1, meta.MaxBatch).Draw(r, "step"),
			Ranks: rapid.Uint64Range(1, meta.MaxRanks).Draw(r, "ranks"), Tail: meta.Tail(rapid.IntRange(0, 2).Draw(r, "tail")),
		}
		steps, all := sample(c), c.Steps()
		n := uint64(len(steps))
		if n > all || n > MaxSteps || n == 0 && all > 0 || n > 1 && n*max(min(c.Global, c.N), c.Ranks) > MaxPositions {
			r.Fatalf("%d steps of %d", n, all)
		}
		if n < all && n < MaxSteps && n > 1 && (n+1)*max(min(c.Global, c.N), c.Ranks) <= MaxPositions {
			r.Fatalf("only %d steps of %d", n, all)
		}
		for i, s := range steps {
			gap := s
			if i > 0 {
				gap -= steps[i-1]
			}
			if s >= all || i == 0 && s != 0 || i > 0 && (gap < all/n || gap > all/n+1) {
				r.Fatalf("step %d of %d is %d, %d after the one before", i, all, s, gap)
			}
		}
	})
}

package peers

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What is remembered is the last 256, and p95 is theirs.
func TestTimes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var ts times
		var all []time.Duration
		for _, d := range rapid.SliceOfN(rapid.Int64Range(0, 50), 0, 600).Draw(r, "took") {
			ts.add(time.Duration(d))
			all = append(all, time.Duration(d))
		}
		last := slices.Sorted(slices.Values(all[max(0, len(all)-remembered):]))
		got, ok := ts.p95()
		if !ok {
			if len(last) >= enough {
				r.Fatalf("nothing of %d", len(last))
			}
			return
		}
		within, below := 0, 0
		for _, d := range last {
			if d <= got {
				within++
			}
			if d < got {
				below++
			}
		}
		if within*100 < 95*len(last) || below*100 >= 95*len(last) {
			r.Fatalf("%d of %d within %d, %d below", within, len(last), got, below)
		}
	})
}

func TestClassOf(t *testing.T) {
	for bytes, want := range map[uint64]int{
		0: 0, 1: 0, 64 << 10: 0, 64<<10 + 1: 1, 1 << 20: 1, 1<<20 + 1: 2, 16 << 20: 2, 16<<20 + 1: 3, 1 << 40: 3,
	} {
		if got := classOf(bytes); got != want {
			t.Errorf("%d bytes are of class %d, want %d", bytes, got, want)
		}
	}
}

package belady_test

import (
	"math/rand/v2"
	"testing"

	"rankfs/test/belady"
)

func TestHitsOfACyclicScan(t *testing.T) {
	var uses []int
	for i := range 5 * 1000 {
		uses = append(uses, i%1000)
	}
	if got := belady.Hits(uses, 250); got != 4*250 { // a quarter, but for the first time
		t.Errorf("%d hits", got)
	}
}

// By trying everything: the optimum is the largest number of kept spans such
// that no moment has more of them than there is room.
func TestHitsAreTheMostOfAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		var uses []int
		for range 3 {
			uses = append(uses, rng.Perm(4)[:1+rng.IntN(4)]...)
		}
		places := rng.IntN(4)
		if got, want := belady.Hits(uses, places), most(uses, places); got != want {
			t.Fatalf("%v in %d: %d, want %d", uses, places, got, want)
		}
	}
}

func most(uses []int, places int) (most int) {
	type span struct{ from, to int }
	var spans []span
	last := map[int]int{}
	for at, key := range uses {
		if from, ok := last[key]; ok {
			spans = append(spans, span{from, at})
		}
		last[key] = at
	}
	for set := range 1 << len(spans) {
		load, kept, fits := make([]int, len(uses)), 0, true
		for i, s := range spans {
			if set>>i&1 == 1 {
				kept++
				for at := s.from; at < s.to; at++ {
					load[at]++
					fits = fits && load[at] <= places
				}
			}
		}
		if fits {
			most = max(most, kept)
		}
	}
	return most
}

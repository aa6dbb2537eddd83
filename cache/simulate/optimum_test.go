package simulate_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"rankfs/cache/policy"
	"rankfs/cache/simulate"
	"rankfs/meta"
)

func TestOptimumOfACyclicScan(t *testing.T) {
	s := small()
	s.Memory, s.Epochs = 250*mib, 5
	hits, err := simulate.Optimum(s)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "optimum", hits, 4.0/5*0.25, 1e-9) // a quarter, but for the first epoch
}

// By trying everything: the optimum is the largest number of kept spans such
// that no moment has more of them than there is room.
func TestOptimumIsTheBestOfAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		s := small()
		s.Partitions, s.Epochs, s.Memory = 4, 3, (1+rng.Int64N(3))*mib
		for range s.Epochs {
			var reads []uint32
			for _, p := range rng.Perm(4)[:1+rng.IntN(4)] {
				reads = append(reads, uint32(p))
			}
			s.Reads = append(s.Reads, reads)
		}
		want, uses := bestOfAll(s.Reads, int(s.Memory/mib))
		if got, err := simulate.Optimum(s); err != nil || got != float64(want)/float64(uses) {
			t.Fatalf("%v in %d: %v, %v, want %d of %d", s.Reads, s.Memory/mib, got, err, want, uses)
		}
	}
}

func bestOfAll(reads [][]uint32, slabs int) (best, uses int) {
	type span struct{ from, to int }
	var spans []span
	last := map[uint32]int{}
	for _, epoch := range reads {
		for _, p := range epoch {
			if from, ok := last[p]; ok {
				spans = append(spans, span{from, uses})
			}
			last[p] = uses
			uses++
		}
	}
	for set := range 1 << len(spans) {
		load, kept, fits := make([]int, uses), 0, true
		for i, s := range spans {
			if set>>i&1 == 1 {
				kept++
				for at := s.from; at < s.to; at++ {
					load[at]++
					fits = fits && load[at] <= slabs
				}
			}
		}
		if fits {
			best = max(best, kept)
		}
	}
	return best, uses
}

func TestOptimumOfUnequalPartitions(t *testing.T) {
	s := small()
	s.Bytes = make([]int64, 1000)
	if _, err := simulate.Optimum(s); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// equal is any scenario of one rank, whose partitions are in memory or not.
func equal(t *rapid.T) simulate.Scenario {
	s := anyScenario(t)
	s.Nodes, s.Ranks, s.Once, s.Disk, s.Packed, s.Tail = 1, 1, false, 0, 0, meta.TailKeep
	s.Bytes = s.Bytes[:1]
	return s
}

// Whatever the policy: what it finds in memory, and what it does not fetch, is
// no more than the offline optimum.
func TestNobodyBeatsTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, by := equal(t), anyPolicy(t)
		most, err := simulate.Optimum(s)
		if err != nil {
			t.Fatal(err)
		}
		o, err := simulate.RunChecked(s, by)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.Found(policy.RAM); got > most+1e-9 {
			t.Fatalf("hits of %v, the optimum is %v", got, most)
		}
	})
}

func TestOptimumRisesWithMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := equal(t)
		less, err := simulate.Optimum(s)
		if err != nil {
			t.Fatal(err)
		}
		s.Memory += rapid.Int64Range(0, 40<<20).Draw(t, "more")
		if more, err := simulate.Optimum(s); err != nil || more < less {
			t.Fatalf("%v, with more memory %v, %v", less, more, err)
		}
	})
}

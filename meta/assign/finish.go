package assign

import "rankfs/meta/heap"

// A finish hands chunks out to ranks one by one, each to the rank that has the
// fewest; of several, to the one with the lowest number. No order ends sooner for
// chunks of one size.
type finish struct {
	given []int32 // by rank
	ranks heap.Heap[load]
}

// A load is the number of chunks of a rank.
type load struct{ chunks, rank int32 }

func (l load) Before(o load) bool {
	return l.chunks < o.chunks || l.chunks == o.chunks && l.rank < o.rank
}

// newFinish begins with the chunks that are given already.
func newFinish(given []int32, ranks []int32) *finish {
	f := &finish{given: given}
	for _, rank := range ranks {
		f.ranks = append(f.ranks, load{given[rank], rank})
	}
	f.ranks.Init()
	return f
}

// give gives one more to the first of the heap, and says how many that has now.
func (f *finish) give() int32 {
	first := &f.ranks[0]
	first.chunks++
	f.given[first.rank] = first.chunks
	n := first.chunks
	f.ranks.Fix()
	return n
}

func (f *finish) giveOut(n int) {
	for range n {
		f.give()
	}
}

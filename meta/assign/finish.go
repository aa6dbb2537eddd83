package assign

// A finish hands chunks out to ranks one by one, each to the rank that would
// be done with it first; of several, to the one with the lowest number. No
// order ends sooner for chunks of one size. It is a heap of ranks by the time
// at which each ends if it gets one more.
type finish struct {
	speeds []uint32
	given  []int32 // by rank
	ranks  []int32 // the heap: ranks that may get more
}

// newFinish begins with the chunks that are given already. Ranks that have no
// speed get none.
func newFinish(speeds []uint32, given []int32, ranks []int32) *finish {
	f := &finish{speeds: speeds, given: given}
	for _, rank := range ranks {
		if speeds[rank] > 0 {
			f.ranks = append(f.ranks, rank)
		}
	}
	for i := len(f.ranks)/2 - 1; i >= 0; i-- {
		f.down(i)
	}
	return f
}

// end is the time when the first of the heap ends if it gets one more.
func (f *finish) end() Ratio {
	rank := f.ranks[0]
	return Ratio{uint64(f.given[rank]) + 1, uint64(f.speeds[rank])}
}

// give gives one more to the first of the heap.
func (f *finish) give() {
	f.given[f.ranks[0]]++
	f.down(0)
}

func (f *finish) giveOut(n int) {
	for range n {
		f.give()
	}
}

// drop takes the first of the heap out of it.
func (f *finish) drop() {
	last := len(f.ranks) - 1
	f.ranks[0] = f.ranks[last]
	f.ranks = f.ranks[:last]
	f.down(0)
}

func (f *finish) before(i, j int) bool {
	a, b := f.ranks[i], f.ranks[j]
	// Chunks are below 2^31 and speeds below 2^32: no product overflows.
	left := (uint64(f.given[a]) + 1) * uint64(f.speeds[b])
	right := (uint64(f.given[b]) + 1) * uint64(f.speeds[a])
	return left < right || left == right && a < b
}

func (f *finish) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(f.ranks); child++ {
			if f.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		f.ranks[i], f.ranks[least] = f.ranks[least], f.ranks[i]
		i = least
	}
}

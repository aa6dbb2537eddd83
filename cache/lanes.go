package cache

import "iter"

// maxLanes bounds the orders of worth of idle batches: to find what goes first is to
// look at the begin of each.
const maxLanes = 64

// Lanes are orders of worth side by side. What one reader comes to is in one lane,
// in the order in which the reader comes to it, which does not change when the
// reader does so later or sooner than was thought: worths in different lanes are
// of different moments, and to be compared only if they are reckoned anew. What
// no reader is known to come to is in the first lane.
type lanes [maxLanes]order

// A place is where a batch is in the lanes.
type place struct {
	lane  uint8
	worth float64 // as of when that lane was put in order
}

// all are the numbers in the lanes, what is near the begin of one near the begin.
func (l *lanes) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for at, more := uint32(0), true; more; at++ {
			more = false
			for i := range l {
				if at < l[i].count {
					if more = true; !yield(l[i].id(at)) {
						return
					}
				}
			}
		}
	}
}

package cache

import "iter"

const (
	// maxLanes bounds the orders of worth of idle batches: finding a victim looks at the
	// top of each.
	maxLanes = 64

	// spentLane has what was read, and never is to be read again as far as is known, in
	// order of its last use.
	spentLane = maxLanes - 1
)

// Lanes are orders of worth side by side. The batches that one reader comes to are in
// one lane, in the order in which it comes to them, which holds even if the reader
// is later or sooner than expected. Worths in different lanes were computed at
// different moments, so they must be computed anew before they are compared. The
// batches that no reader is known to come to are in the lane of their job, those of no
// job in the first, and what is spent in the last.
type lanes [maxLanes]order

// A place is where a batch is in the lanes.
type place struct {
	lane  uint8
	worth float64 // as of when that lane was put in order
}

// all are the numbers in the lanes, what is near the begin of one near the begin, but not
// what is spent.
func (l *lanes) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for at, more := uint32(0), true; more; at++ {
			more = false
			for i := range l[:spentLane] {
				if at < l[i].count {
					if more = true; !yield(l[i].id(at)) {
						return
					}
				}
			}
		}
	}
}

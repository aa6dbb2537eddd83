package cache

import "iter"

const (
	// maxHeaps bounds the heaps of idle batches: finding a victim looks at the top of each.
	maxHeaps = 64

	// spentHeap has what was read, and never is to be read again as far as is known, in
	// order of its last use.
	spentHeap = maxHeaps - 1
)

// Heaps are those of idle batches, side by side. The batches that one reader comes to are in
// one heap, in the order in which it comes to them, which holds even if the reader
// is later or sooner than expected. Worths in different heaps were computed at
// different moments, so they must be computed anew before they are compared. The
// batches that no reader is known to come to are in the heap of their job, those of no
// job in the first, and what is spent in the last.
type heaps [maxHeaps]heap

// A heapPlace is where a batch is in the heaps.
type heapPlace struct {
	heap  uint8
	worth float64 // as of when that heap was put in order
}

// all are the numbers in all heaps but that of spent batches, first those near the top of any heap.
func (l *heaps) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for at, more := uint32(0), true; more; at++ {
			more = false
			for i := range l[:spentHeap] {
				if at < l[i].count {
					if more = true; !yield(l[i].id(at)) {
						return
					}
				}
			}
		}
	}
}

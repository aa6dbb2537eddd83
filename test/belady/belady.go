// Package belady says how much the best of all policies for a cache would find in it: one
// that knows the future.
package belady

import "rankfs/meta/heap"

// Hits is how many uses, in this order, find what they use in a cache with so many places, which
// may leave out what it reads, and needs no place for what is being read. That is Belady's
// rule with bypass.
func Hits[K comparable](uses []K, places int) (hits int) {
	next, seen := make([]int, len(uses)), make(map[K]int) // zero: it is not used again
	for at := len(uses) - 1; at >= 0; at-- {
		next[at], seen[uses[at]] = seen[uses[at]], at
	}
	kept := make(map[K]int) // until its next use
	var latest heap.Heap[again[K]]
	for at, key := range uses {
		if _, found := kept[key]; found {
			hits++
			delete(kept, key)
		}
		if next[at] == 0 {
			continue
		}
		kept[key] = next[at]
		latest.Push(again[K]{next[at], key})
		if len(kept) > places {
			delete(kept, latest.Pop().key)
		}
	}
	return hits
}

// An again is the next use of what is kept; the last comes first, so that those that
// have been come after all that are to come.
type again[K any] struct {
	at  int
	key K
}

func (a again[K]) Before(b again[K]) bool { return a.at > b.at }

package assign

import (
	"fmt"
	"slices"

	"rankfs/meta"
)

// lists is a table of lists of numbers. It finds a list again by a table of its
// own, since a job has a million: a map with a string for each would take most
// of the time of a plan.
type lists struct {
	end   []int32 // where each list ends in items
	items []int32
	slots []int32 // open addressing, a power of two, at most half full: number+1
}

// maxItems bounds the table's memory.
const maxItems = 1 << 27

func (l *lists) at(n int32) []int32 {
	first := int32(0)
	if n > 0 {
		first = l.end[n-1]
	}
	return l.items[first:l.end[n]]
}

func (l *lists) add(list []int32) int32 {
	l.items = append(l.items, list...)
	l.end = append(l.end, int32(len(l.items)))
	return int32(len(l.end) - 1)
}

// number returns the number of a list, which is added if it is new.
func (l *lists) number(list []int32) (int32, error) {
	if 2*len(l.end) >= len(l.slots) {
		l.grow()
	}
	i := l.slot(list)
	for ; l.slots[i] > 0; i = (i + 1) & (len(l.slots) - 1) {
		if n := l.slots[i] - 1; slices.Equal(l.at(n), list) {
			return n, nil
		}
	}
	if len(l.items)+len(list) > maxItems {
		return 0, fmt.Errorf("sets of nodes %w: together they name more than %d", meta.ErrInvalid, maxItems)
	}
	n := l.add(list)
	l.slots[i] = n + 1
	return n, nil
}

func (l *lists) grow() {
	size := 64
	for size <= 2*len(l.end) {
		size *= 2
	}
	l.slots = make([]int32, size)
	for n := range l.end {
		i := l.slot(l.at(int32(n)))
		for l.slots[i] > 0 {
			i = (i + 1) & (len(l.slots) - 1)
		}
		l.slots[i] = int32(n + 1)
	}
}

// slot is where to look for a list first. Whoever chooses who holds what could
// make lists collide, and gains a slow plan of his own data.
func (l *lists) slot(list []int32) int {
	h := uint64(0)
	for _, t := range list {
		h = (h ^ uint64(t)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return int(h & uint64(len(l.slots)-1))
}

// Package lists gives each list of numbers a number, the same to equal lists: a million
// chunks are held by few different sets of nodes.
package lists

import (
	"fmt"
	"slices"

	"rankfs/meta"
)

// maxItems bounds the memory of a table.
const maxItems = 1 << 27

// A Table numbers lists. It finds a list again by a hash table of its own, since a
// job has a million: a map with a string for each would take most of the time of a
// plan. The zero value is empty.
type Table struct {
	end   []int32 // where each list ends in items
	items []int32
	slots []int32 // open addressing, a power of two, at most half full: number+1
}

// Len is the number of lists.
func (l *Table) Len() int { return len(l.end) }

// Items are all lists, one after the other. The caller must not change them.
func (l *Table) Items() []int32 { return l.items }

// Bounds are the limits of a list in Items.
func (l *Table) Bounds(n int32) (from, to int32) {
	if n > 0 {
		from = l.end[n-1]
	}
	return from, l.end[n]
}

// At returns a list. The caller must not change it.
func (l *Table) At(n int32) []int32 {
	from, to := l.Bounds(n)
	return l.items[from:to]
}

// Add appends a list, also one that is there already, and returns its number.
func (l *Table) Add(list ...int32) int32 {
	l.items = append(l.items, list...)
	l.end = append(l.end, int32(len(l.items)))
	return int32(len(l.end) - 1)
}

// Number returns the number of a list, which is added if it is new.
func (l *Table) Number(list []int32) (int32, error) {
	if 2*len(l.end) >= len(l.slots) {
		l.grow()
	}
	i := l.slot(list)
	for ; l.slots[i] > 0; i = (i + 1) & (len(l.slots) - 1) {
		if n := l.slots[i] - 1; slices.Equal(l.At(n), list) {
			return n, nil
		}
	}
	if len(l.items)+len(list) > maxItems {
		return 0, fmt.Errorf("table of sets of nodes %w: together these name more than %d", meta.ErrInvalid, maxItems)
	}
	n := l.Add(list...)
	l.slots[i] = n + 1
	return n, nil
}

func (l *Table) grow() {
	size := 64
	for size <= 2*len(l.end) {
		size *= 2
	}
	l.slots = make([]int32, size)
	for n := range l.end {
		i := l.slot(l.At(int32(n)))
		for l.slots[i] > 0 {
			i = (i + 1) & (len(l.slots) - 1)
		}
		l.slots[i] = int32(n + 1)
	}
}

// slot is where to look for a list first. A user who chooses which nodes hold the chunks
// could make lists collide, and plans of the user's own data would take long.
func (l *Table) slot(list []int32) int {
	h := uint64(0)
	for _, t := range list {
		h = (h ^ uint64(t)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return int(h & uint64(len(l.slots)-1))
}

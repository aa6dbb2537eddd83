package state

import "slices"

// pageUnits is how many units a page has: 4 KiB are copied when the first of
// them is done after a snapshot.
const pageUnits = 1 << 15

type page [pageUnits / 64]uint64

// units say which units of a queue are done. Pages without one are nil.
type units struct {
	pages []*page
	owned []bool // not shared with a snapshot
	done  uint64
}

func newUnits(n uint64) units {
	pages := (n + pageUnits - 1) / pageUnits
	return units{pages: make([]*page, pages), owned: make([]bool, pages)}
}

// share is a copy; the first of the two to change a page copies that page.
func (u *units) share() units {
	return units{slices.Clone(u.pages), make([]bool, len(u.pages)), u.done}
}

func (u *units) has(unit int64) bool {
	p := u.pages[unit/pageUnits]
	return p != nil && p[unit%pageUnits/64]&(1<<(unit%64)) != 0
}

// set marks a unit as done that was not.
func (u *units) set(unit int64) {
	i := unit / pageUnits
	switch {
	case u.pages[i] == nil:
		u.pages[i] = new(page)
	case !u.owned[i]:
		p := *u.pages[i]
		u.pages[i] = &p
	}
	u.owned[i] = true
	u.pages[i][unit%pageUnits/64] |= 1 << (unit % 64)
	u.done++
}

// words is a bitmap of n units, unit 0 in the lowest bit of the first word.
func (u *units) words(n uint64) []uint64 {
	w := make([]uint64, (n+63)/64)
	for i, p := range u.pages {
		if p != nil {
			copy(w[i*len(p):], p[:])
		}
	}
	return w
}

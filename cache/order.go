package cache

import "rankfs/cache/ledger"

// An order is a heap of batches' numbers, the one worth least on top. It grows by
// pages, so that no push takes long: a heap.Heap is one slice, and does not say where
// an element is, by which batches are taken out of the middle.
type order struct {
	ids    []*[ledger.Page]uint32 // numbers
	worths []*[ledger.Page]float64
	count  uint32
	slot   func(id uint32) *uint32 // the field that notes a number's place in the heap
}

func (o *order) id(at uint32) uint32     { return o.ids[at/ledger.Page][at%ledger.Page] }
func (o *order) worth(at uint32) float64 { return o.worths[at/ledger.Page][at%ledger.Page] }

func (o *order) set(at, id uint32, worth float64) {
	o.ids[at/ledger.Page][at%ledger.Page], o.worths[at/ledger.Page][at%ledger.Page] = id, worth
	*o.slot(id) = at
}

// least is the number worth least. The order must not be empty.
func (o *order) least() (id uint32, worth float64) { return o.id(0), o.worth(0) }

func (o *order) push(id uint32, worth float64) {
	if o.count%ledger.Page == 0 && int(o.count/ledger.Page) == len(o.ids) {
		o.ids = append(o.ids, new([ledger.Page]uint32))
		o.worths = append(o.worths, new([ledger.Page]float64))
	}
	o.count++
	o.up(o.count-1, id, worth)
}

// remove takes out the number at a place.
func (o *order) remove(at uint32) {
	o.count--
	if last := o.count; at < last {
		o.sift(at, o.id(last), o.worth(last))
	}
	if keep := int(o.count/ledger.Page) + 2; keep < len(o.ids) {
		clear(o.ids[keep:])
		clear(o.worths[keep:])
		o.ids, o.worths = o.ids[:keep], o.worths[:keep]
	}
}

// fix gives the number at a place another worth.
func (o *order) fix(at uint32, worth float64) { o.sift(at, o.id(at), worth) }

// sift puts a number where it belongs, from a place that is to be filled.
func (o *order) sift(at, id uint32, worth float64) {
	if at > 0 && worth < o.worth((at-1)/2) {
		o.up(at, id, worth)
	} else {
		o.down(at, id, worth)
	}
}

func (o *order) up(at, id uint32, worth float64) {
	for at > 0 {
		above := (at - 1) / 2
		if !(worth < o.worth(above)) {
			break
		}
		o.set(at, o.id(above), o.worth(above))
		at = above
	}
	o.set(at, id, worth)
}

func (o *order) down(at, id uint32, worth float64) {
	for {
		below := 2*at + 1
		if below >= o.count {
			break
		}
		if below+1 < o.count && o.worth(below+1) < o.worth(below) {
			below++
		}
		if !(o.worth(below) < worth) {
			break
		}
		o.set(at, o.id(below), o.worth(below))
		at = below
	}
	o.set(at, id, worth)
}

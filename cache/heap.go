package cache

import "rankfs/cache/ledger"

// A heap is one of batches' numbers, the one worth least on top. It grows by pages, so that no
// push takes long: one of container/heap is one slice, and does not say where an element is, by
// which batches are taken out of the middle.
type heap struct {
	ids    []*[ledger.Page]uint32 // numbers
	worths []*[ledger.Page]float64
	count  uint32
	slot   func(id uint32) *uint32 // the field that notes a number's place in the heap
}

func (h *heap) id(at uint32) uint32     { return h.ids[at/ledger.Page][at%ledger.Page] }
func (h *heap) worth(at uint32) float64 { return h.worths[at/ledger.Page][at%ledger.Page] }

func (h *heap) set(at, id uint32, worth float64) {
	h.ids[at/ledger.Page][at%ledger.Page], h.worths[at/ledger.Page][at%ledger.Page] = id, worth
	*h.slot(id) = at
}

// least is the number worth least. The heap must not be empty.
func (h *heap) least() (id uint32, worth float64) { return h.id(0), h.worth(0) }

func (h *heap) push(id uint32, worth float64) {
	if h.count%ledger.Page == 0 && int(h.count/ledger.Page) == len(h.ids) {
		h.ids = append(h.ids, new([ledger.Page]uint32))
		h.worths = append(h.worths, new([ledger.Page]float64))
	}
	h.count++
	h.up(h.count-1, id, worth)
}

// remove takes out the number at a place.
func (h *heap) remove(at uint32) {
	h.count--
	if last := h.count; at < last {
		h.sift(at, h.id(last), h.worth(last))
	}
	if keep := int(h.count/ledger.Page) + 2; keep < len(h.ids) {
		clear(h.ids[keep:])
		clear(h.worths[keep:])
		h.ids, h.worths = h.ids[:keep], h.worths[:keep]
	}
}

// fix gives the number at a place another worth.
func (h *heap) fix(at uint32, worth float64) { h.sift(at, h.id(at), worth) }

// sift puts a number where it belongs, from a place that is to be filled.
func (h *heap) sift(at, id uint32, worth float64) {
	if at > 0 && worth < h.worth((at-1)/2) {
		h.up(at, id, worth)
	} else {
		h.down(at, id, worth)
	}
}

func (h *heap) up(at, id uint32, worth float64) {
	for at > 0 {
		above := (at - 1) / 2
		if !(worth < h.worth(above)) {
			break
		}
		h.set(at, h.id(above), h.worth(above))
		at = above
	}
	h.set(at, id, worth)
}

func (h *heap) down(at, id uint32, worth float64) {
	for {
		below := 2*at + 1
		if below >= h.count {
			break
		}
		if below+1 < h.count && h.worth(below+1) < h.worth(below) {
			below++
		}
		if !(h.worth(below) < worth) {
			break
		}
		h.set(at, h.id(below), h.worth(below))
		at = below
	}
	h.set(at, id, worth)
}

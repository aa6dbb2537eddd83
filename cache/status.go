package cache

import (
	"math"
	"time"

	"rankfs/meta"
)

// A status describes an idle batch, in 48 bytes. A batch that is also packed
// has one for each form. Times are rounded: that of the last use to a microsecond,
// others to half of a hundredth.
type status struct {
	step       uint64
	rank, pair uint32
	size       uint32
	pages      uint32 // that it takes, if packed
	bytes      uint32 // the number of the packed slab, of the slot, or of the opened that has them
	slot       uint32 // in the order of worth
	next       uint32 // of the ledger
	gap, took  shortTime
	used       uint64 // microseconds since the cache began, and flags below them
}

const (
	packedFlag = 1 << iota
	openedFlag
	byHandFlag
	denseFlag
	wideFlag  // see extent
	thereFlag // or the status is not in use
	heapFlag  // the lowest bit of the number of a heap
	heapMask  = heapFlag * (maxHeaps - 1)
	flagBits  = 16

	slotFlag = 1 << (flagBits - 1)
)

// newStatus is the status of a batch, but for what the table knows of it.
func newStatus(b batch, began time.Time) status {
	r := status{step: b.key.Step, rank: uint32(b.key.Rank), size: uint32(b.size), pages: uint32(b.real / meta.WholePages(1)), bytes: b.number}
	r.remember(b, began)
	r.set(thereFlag, true)
	r.set(packedFlag, b.packed)
	r.set(slotFlag, b.inSlot)
	r.set(denseFlag, b.dense)
	r.set(wideFlag, uint64(r.rank) != b.key.Rank || int64(r.size) != b.size)
	return r
}

// An extent has in full the numbers that a status cuts short. Few batches need one:
// those larger than 4 GiB, or of a rank that no series has.
type extent struct {
	rank uint64
	size int64
}

// A shortTime is a time in seconds, in few bits: a float32 without the lower half of its bits.
type shortTime uint16

func shortTimeOf(d time.Duration) shortTime {
	return shortTime((math.Float32bits(float32(d.Seconds())) + 1<<15) >> 16)
}

func (b shortTime) duration() time.Duration {
	return time.Duration(math.Round(float64(math.Float32frombits(uint32(b)<<16)) * float64(time.Second)))
}

func (r *status) set(flag uint64, is bool) {
	r.used &^= flag
	if is {
		r.used |= flag
	}
}

func (r *status) heap() uint8 { return uint8(r.used & heapMask / heapFlag) }

func (r *status) setHeap(n uint8) { r.used = r.used&^heapMask | uint64(n)*heapFlag }

// remember notes the history of a batch.
func (r *status) remember(k batch, began time.Time) {
	at := uint64(0)
	if !k.last.IsZero() {
		at = uint64(max(1, k.last.Sub(began).Microseconds()))
	}
	r.used = at<<flagBits | r.used&(1<<flagBits-1)
	r.set(openedFlag, k.opened)
	r.set(byHandFlag, k.byHand)
	r.gap, r.took = shortTimeOf(k.gap), shortTimeOf(k.took)
}

package cache

import (
	"math"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/policy"
)

// A batch is what is known of one that is here.
type batch struct {
	key  Key
	plan Plan // one that has it
	form
	history
}

// A form is where the bytes of a batch are: in one of the first four fields.
type form struct {
	ram     *ramFile
	file    *disks.Slab // on NVMe
	packed  bool        // and not what an open gets
	pooled  bool        // in memory, and not in a file of its own
	number  uint32      // of the packed slab, or of the slot
	size    int64       // of the batch
	real    int64       // that it takes, if packed
	backing int32
	dense   bool // hardly smaller if packed
}

func (f *form) fd() int {
	if f.ram != nil {
		return f.ram.fd
	}
	return int(f.file.Fd())
}

// inMemory reports whether an open finds the bytes in memory.
func (f *form) inMemory() bool { return f.ram != nil || f.pooled }

// memory is how much of it the batch takes.
func (f *form) memory() int64 {
	switch {
	case f.packed:
		return f.real
	case f.inMemory():
		return pages(f.size)
	}
	return 0
}

func (f *form) tier() string {
	if f.file != nil {
		return "nvme"
	}
	return "ram"
}

func (f *form) level() policy.Level {
	switch {
	case f.packed:
		return policy.Packed
	case f.file != nil:
		return policy.Disk
	}
	return policy.RAM
}

// A history is what the worth of a batch is guessed from.
type history struct {
	opened bool          // some rank has had it; what no rank has had is kept longer
	byHand bool          // it was asked for by hand
	last   time.Time     // when it was used
	gap    time.Duration // between uses; zero until there were two
	took   time.Duration // to fill it
}

// A status is what is known of an idle batch, in 48
// bytes. A batch that is also packed has one for each form. Times are coarser
// than they were: of the last use to a microsecond, of others to half of a
// hundredth.
type status struct {
	step       uint64
	rank, pair uint32
	size       uint32
	pages      uint32 // that it takes, if packed
	bytes      uint32 // the number of what has them: of a packed slab, of a slot, or among opened
	slot       uint32 // in the order of worth
	next       uint32 // of the ledger
	gap, took  brief
	used       uint64 // microseconds since the cache began, and flags below them
}

const (
	packedFlag = 1 << iota
	openedFlag
	byHandFlag
	denseFlag
	wideFlag  // see extent
	spentFlag // and not in the order of worth
	thereFlag // or the record is not in use
	laneFlag  // the lowest bit of the number of a lane
	laneMask  = laneFlag * (maxLanes - 1)
	flagBits  = 16

	pooledFlag = 1 << (flagBits - 1)
)

// An extent is what is in a status, in full. Few batches need one: they are larger
// than 4 GiB, or no plan has such a rank.
type extent struct {
	rank uint64
	size int64
}

// A brief is a time in seconds: a float32 without the lower half of its bits.
type brief uint16

func briefly(d time.Duration) brief {
	return brief((math.Float32bits(float32(d.Seconds())) + 1<<15) >> 16)
}

func (b brief) duration() time.Duration {
	return time.Duration(math.Round(float64(math.Float32frombits(uint32(b)<<16)) * float64(time.Second)))
}

func (r *status) set(flag uint64, is bool) {
	r.used &^= flag
	if is {
		r.used |= flag
	}
}

func (r *status) lane() uint8 { return uint8(r.used & laneMask / laneFlag) }

func (r *status) setLane(n uint8) { r.used = r.used&^laneMask | uint64(n)*laneFlag }

// remember notes the history of a batch.
func (r *status) remember(k batch, began time.Time) {
	at := uint64(0)
	if !k.last.IsZero() {
		at = uint64(max(1, k.last.Sub(began).Microseconds()))
	}
	r.used = at<<flagBits | r.used&(1<<flagBits-1)
	r.set(openedFlag, k.opened)
	r.set(byHandFlag, k.byHand)
	r.gap, r.took = briefly(k.gap), briefly(k.took)
}

package cache

import (
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/policy"
	"rankfs/meta"
)

// A batch is one in memory or on disk: where its bytes are, and its past uses.
type batch struct {
	key    Key
	series *Series // one that has it
	form
	history
}

// A form is where the bytes of a batch are: in one of the first four fields.
type form struct {
	ram     *ramFile
	file    *disks.Slab // on NVMe
	packed  bool        // and not what an open gets
	inSlot  bool        // in memory, and not in a file of its own
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
func (f *form) inMemory() bool { return f.ram != nil || f.inSlot }

// memory is the memory that the batch takes.
func (f *form) memory() int64 {
	switch {
	case f.packed:
		return f.real
	case f.inMemory():
		return meta.WholePages(f.size)
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

// A history is the past of a batch, from which its worth is estimated.
type history struct {
	opened bool          // some rank has had it; a batch that no rank has had is kept longer
	byHand bool          // it was asked for by hand
	last   time.Time     // when it was used
	gap    time.Duration // between uses; zero until there were two
	took   time.Duration // to fill it
}

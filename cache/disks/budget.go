package disks

import (
	"sync"

	"rankfs/meta"
)

// ErrNoRoom: no directory can take the slab now. It wraps meta.ErrNoSpace. What is of this
// kind says in its own words what there is no room for, and why.
var ErrNoRoom = meta.Worded(meta.ErrNoSpace, "no room now")

// A Floor is the part of a file system that stays free: the larger of the two.
type Floor struct {
	Bytes   int64
	Percent float64 // of the file system's size
}

func (f Floor) of(total int64) int64 {
	return max(f.Bytes, int64(f.Percent/100*float64(total)))
}

// A budget counts the room that a directory may take of its disk, and that it takes, in bytes of
// blocks:
//
//   - used is at least what the directory's files take: slabs, unfinished files, dying
//     files, the index and reserved files. A file is counted before it is made, and
//     until its blocks are free.
//   - others and reserved together never exceed most.
//
// Its lock is held within its methods only, and no other is taken meanwhile. It may be
// taken while the slabs' lock is held.
type budget struct {
	most int64

	mu struct {
		sync.Mutex
		used     int64
		others   int64 // of used: of files that are not slabs, or for them
		reserved int64 // for such files, and not charged yet: no slab may take them
		index    int64 // of used: the index file's
	}
}

// count counts bytes as used if the budget allows. It fails if it never will.
func (b *budget) count(need int64) (ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case need > b.most-b.mu.others:
		return false, meta.Worded(ErrNoRoom, "a slab of %d bytes is more than the nvme budget of %d, of which other files have %d", need, b.most, b.mu.others)
	case b.mu.used+b.mu.reserved+need > b.most:
		return false, nil
	}
	b.mu.used += need
	return true, nil
}

// add counts bytes that files take already, or that they take no more if it is less
// than nothing.
func (b *budget) add(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.used += bytes
}

// over reports whether more is used than may be.
func (b *budget) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.used+b.mu.reserved > b.most
}

// left is the room that is not used.
func (b *budget) left() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, b.most-b.mu.used-b.mu.reserved)
}

// usage is the room of all files, and of those among them which are not slabs.
func (b *budget) usage() (used, others int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.used, b.mu.others
}

// room is the room for slabs where all files may take most: of the room used already,
// if nothing is written.
func (b *budget) room(most int64, written bool) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	limit := b.most - b.mu.reserved
	if !written {
		limit = b.mu.used
	}
	return max(0, min(limit, most)-b.mu.others-b.mu.index)
}

// setIndex says what the index file takes, which is counted: it has replaced the last
// one, or that is gone.
func (b *budget) setIndex(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.used -= b.mu.index
	b.mu.index = bytes
}

// forOthers is the room beside files that are not slabs, as slabs make way for them.
func (b *budget) forOthers() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most - b.mu.others - b.mu.reserved
}

// reserve keeps bytes from slabs to come, unless they are more than other files have
// left.
func (b *budget) reserve(bytes int64) (ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ok = bytes <= b.most-b.mu.others-b.mu.reserved
	if ok {
		b.mu.reserved += bytes
	}
	return ok
}

// charge counts reserved bytes as used if the budget allows.
func (b *budget) charge(bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.used+bytes > b.most {
		return false
	}
	b.mu.reserved -= bytes
	b.mu.others += bytes
	b.mu.used += bytes
	return true
}

// release gives back what was reserved, and perhaps charged.
func (b *budget) release(bytes int64, charged bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !charged {
		b.mu.reserved -= bytes
		return
	}
	b.mu.others -= bytes
	b.mu.used -= bytes
}

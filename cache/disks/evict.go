package disks

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/meta/diskdir"
	"rankfs/meta/slowdisk"
)

// An evictor makes room in a directory: within its budget, and on its file system.
// What makes way are dying files that ranks have closed, then slabs that no rank has
// open.
//
// Its lock is held for its own fields only, and no other is taken meanwhile.
type evictor struct {
	first    func(a, b Key) bool // whether a goes before b; nil: the one used longest ago
	floor    Floor
	budget   *diskdir.Budget
	health   *health
	slabs    *slabs
	unlinked *unlinked

	mu struct {
		sync.Mutex
		removing int           // slabs
		removed  chan struct{} // closed when one of them is gone
	}
}

// A spare reports whether a slab may be evicted; nil: every slab that no rank has open.
type spare func(Key) bool

// reserve counts bytes as used and pending, giving up slabs for them that may go.
func (v *evictor) reserve(p *place, need int64, may spare) error {
	for !v.budget.Count(need) {
		if _, others := v.budget.Use(); need > v.budget.Max-others {
			return meta.Worded(ErrNoRoom, "a slab of %d bytes is more than the nvme budget of %d, of which other files have %d", need, v.budget.Max, others)
		}
		if !v.shrink(may) {
			return v.full(may)
		}
	}
	p.pending.Add(need)
	if err := v.clear(p, may); err != nil {
		v.unreserve(p, need)
		return v.health.refusal(err)
	}
	return nil
}

// unreserve gives back what was reserved for a file that is not begun.
func (v *evictor) unreserve(p *place, need int64) {
	p.pending.Add(-need)
	v.budget.Add(-need)
}

// trim gives up slabs until what is used is within the budget.
func (v *evictor) trim(may spare) error {
	for v.budget.Left() < 0 {
		if !v.shrink(may) {
			return v.full(may)
		}
	}
	return nil
}

// full is the error that nothing may make way.
func (v *evictor) full(may spare) error {
	if may == nil {
		return meta.Worded(ErrNoRoom, "ranks hold all of the nvme budget of %s", meta.FormatBytes(uint64(v.budget.Max)))
	}
	return meta.Worded(ErrNoRoom, "of the nvme budget of %s nothing may make way: ranks hold it or come to it, or it is pinned or of the same view",
		meta.FormatBytes(uint64(v.budget.Max)))
}

// clear gives up slabs until the file system has its floor free, when what is
// pending is written.
func (v *evictor) clear(p *place, may spare) error {
	for range 2 {
		lack, err := v.lack(p)
		if err != nil {
			return refused(err)
		}
		if lack <= 0 {
			return nil
		}
		v.health.squeezed()
		// What is given up is counted here, as some file systems free blocks
		// when they please.
		goal := v.budget.Left() + lack
		for v.budget.Left() < goal && v.shrink(may) {
		}
	}
	if lack, err := v.lack(p); err != nil || lack > 0 {
		return refused(errors.Join(err, errFull))
	}
	return nil
}

// fits clears the file system for files that are no slabs, and whose bytes are
// pending; but nothing is given up for what would not fit anyhow.
func (v *evictor) fits(p *place) error {
	lack, err := v.lack(p)
	if used, others := v.budget.Use(); err == nil && lack > used-others {
		err = errFull
	}
	if err == nil {
		err = v.clear(p, nil)
	}
	return err
}

// lack is the number of bytes that the file system will lack of its floor.
func (v *evictor) lack(p *place) (int64, error) {
	used, _ := v.budget.Use()
	return p.lack(v.floor, used)
}

// shrink frees dying files that ranks have closed, or else evicts one slab that no
// rank has open and that may go. It reports whether it freed any.
func (v *evictor) shrink(may spare) bool {
	if v.unlinked.sweep() {
		return true
	}
	if victim := v.victim(may); victim != nil {
		return v.remove(victim) == nil
	}
	return v.awaitRemoval()
}

// victim picks the slab to evict first, and takes it out of those that may be opened.
func (v *evictor) victim(may spare) *slab {
	for {
		keys := v.oldest(may)
		if len(keys) == 0 {
			return nil
		}
		first := keys[0]
		if v.first != nil {
			for _, k := range keys[1:] {
				if v.first(k, first) {
					first = k
				}
			}
		}
		if s := v.slabs.dropIdle(first); s != nil {
			return s
		}
	}
}

const (
	// sample bounds how many slabs are compared to find one to give up: those that
	// were used longest ago.
	sample = 64
	// looked bounds the slabs that one call of oldest offers to may.
	looked = 1024
)

// oldest are keys of slabs that no rank has open and that may go, the least recently
// used first. Those that may not go count as used now, so that the next call finds
// others.
func (v *evictor) oldest(may spare) []Key {
	switch {
	case may != nil:
		keys := slices.DeleteFunc(v.slabs.idle(looked), func(k Key) bool {
			stays := !may(k)
			if stays {
				v.slabs.touch(k)
			}
			return stays
		})
		return keys[:min(len(keys), sample)]
	case v.first == nil:
		return v.slabs.idle(1)
	}
	return v.slabs.idle(sample)
}

// remove removes the name of a slab that was dropped. If that fails it stays. A
// rank may map it still: then its bytes count until the rank is done.
func (v *evictor) remove(s *slab) error {
	v.mu.Lock()
	v.mu.removing++
	v.mu.Unlock()
	return v.health.finish(func(w *slowdisk.Work) error {
		defer v.endRemoval()
		return w.Do(func() error { return v.unlink(s) })
	})
}

// unlink is remove as the disk does it.
func (v *evictor) unlink(s *slab) error {
	f, openErr := s.place.open(s.name())
	err := s.place.Root.Remove(s.name())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if openErr == nil {
			f.Close()
		}
		v.slabs.stay(s)
		v.health.Fail(fmt.Errorf("remove slab: %w", err), false)
		return err
	}
	if openErr != nil { // nothing is there, or nothing can be known of it
		v.slabs.unlink(s, nil)
		v.budget.Add(-s.real)
	} else if !v.slabs.unlink(s, f) {
		v.unlinked.free(f, s.real)
	}
	return nil
}

func (v *evictor) endRemoval() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mu.removing--
	close(v.mu.removed)
	v.mu.removed = make(chan struct{})
}

// awaitRemoval waits for another goroutine's removal to end, and reports whether one
// did within the patience.
func (v *evictor) awaitRemoval() bool {
	v.mu.Lock()
	busy, ended := v.mu.removing > 0, v.mu.removed
	v.mu.Unlock()
	if !busy {
		return false
	}
	timer := time.NewTimer(v.health.patience)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}

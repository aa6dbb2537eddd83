package disks

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// sample bounds how many slabs are compared to find one to give up: those that
// were used longest ago.
const sample = 64

// left is the budget that is not used; less than nothing if nothing is to be
// written.
func (d *directory) left() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.place == nil || d.suspended() != nil {
		return -1
	}
	return max(0, d.budget-d.mu.used-d.mu.claims)
}

// Room is how many bytes slabs may take of all directories: no more than is there
// of one that is not written to, nothing of one that is not read; and nowhere what
// other files have, nor what is to stay free, as it was when a slab was last
// written.
func (t *Tier) Room() (bytes int64) {
	for _, d := range t.dirs {
		bytes += d.room()
	}
	return bytes
}

func (d *directory) room() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	most := d.budget - d.mu.claims
	switch {
	case d.unreadable():
		return 0
	case d.suspended() != nil:
		most = d.mu.used
	}
	return max(0, min(most, d.mu.place.most.Load())-d.mu.others-d.mu.index)
}

// blocks are the bytes that a file of that size takes, but for the map of its
// blocks.
func (p *place) blocks(size int64) int64 {
	if size > 1<<62 {
		return size
	}
	return (size + p.block - 1) / p.block * p.block
}

// reserve counts bytes as used and pending, giving up slabs for them that may go.
func (d *directory) reserve(p *place, need int64, may spare) error {
	for {
		ok, err := d.count(need)
		if ok {
			break
		}
		if err != nil {
			return err
		}
		if !d.shrink(may) {
			return fmt.Errorf("%d bytes, all of the nvme budget in use: %w", need, ErrNoRoom)
		}
	}
	p.pending.Add(need)
	if err := d.clear(p, may); err != nil {
		p.pending.Add(-need)
		d.unreserve(need)
		return d.refusal(err)
	}
	return nil
}

// count counts bytes as used if the budget allows. It fails if it never will.
func (d *directory) count(need int64) (ok bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case need > d.budget-d.mu.others:
		return false, fmt.Errorf("%d bytes, nvme budget of %d, %d of it for other files: %w", need, d.budget, d.mu.others, ErrNoRoom)
	case d.mu.used+d.mu.claims+need > d.budget:
		return false, nil
	}
	d.mu.used += need
	return true, nil
}

func (d *directory) unreserve(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.used -= bytes
}

// trim gives up slabs until what is used is within the budget.
func (d *directory) trim(may spare) error {
	for {
		d.mu.Lock()
		over := d.mu.used+d.mu.claims > d.budget
		d.mu.Unlock()
		if !over {
			return nil
		}
		if !d.shrink(may) {
			return fmt.Errorf("more than the nvme budget in use: %w", ErrNoRoom)
		}
	}
}

// clear gives up slabs until the file system has its floor free, when what is
// pending is written.
func (d *directory) clear(p *place, may spare) error {
	for range 2 {
		short, err := d.short(p)
		if err != nil {
			return refused(err)
		}
		if short <= 0 {
			return nil
		}
		d.squeeze()
		// What is given up is counted here, as some file systems free blocks
		// when they please.
		d.mu.Lock()
		goal := d.mu.used - short
		d.mu.Unlock()
		for d.usage() > goal && d.shrink(may) {
		}
	}
	if short, err := d.short(p); err != nil || short > 0 {
		return refused(errors.Join(err, errFull))
	}
	return nil
}

var errFull = meta.Worded(unix.ENOSPC, "no space left on device beside what stays free: free some, or lower --nvme-floor or the budget")

// squeeze says that slabs are given up though the budget has room.
func (d *directory) squeeze() {
	d.mu.Lock()
	now := time.Now()
	told := now.Before(d.mu.full)
	d.mu.full = now.Add(d.config.Suspend)
	d.mu.Unlock()
	if !told {
		d.log.Warn("nvme tier makes way", "dir", d.path, "cause", errFull)
	}
}

func (d *directory) usage() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.used
}

// slabBytes is how much slabs take of what is used.
func (d *directory) slabBytes() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.used - d.mu.others
}

// short is how many bytes the file system will lack of its floor.
func (d *directory) short(p *place) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(p.lock.Fd()), &s); err != nil {
		return 0, err
	}
	floor := d.config.Floor.of(int64(s.Blocks) * s.Bsize)
	short := floor + p.pending.Load() - int64(s.Bavail)*s.Bsize
	p.most.Store(d.usage() - short)
	return short, nil
}

// A spare reports whether a slab may be evicted; nil: every slab that no rank has open.
type spare func(Key) bool

// shrink frees dying files that ranks have closed, or else evicts one slab that no
// rank has open and that may go. It reports whether it freed any.
func (d *directory) shrink(may spare) bool {
	if d.sweep() {
		return true
	}
	if victim := d.victim(may); victim != nil {
		return d.remove(victim) == nil
	}
	return d.awaitRemoval()
}

// awaitRemoval waits for another goroutine's removal to end, and reports whether one
// did within the patience.
func (d *directory) awaitRemoval() bool {
	d.mu.Lock()
	busy, ended := d.mu.removing > 0, d.mu.removed
	d.mu.Unlock()
	if !busy {
		return false
	}
	timer := time.NewTimer(d.config.Patience)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}

// victim picks the slab to evict first, and takes it out of those that may be opened.
func (d *directory) victim(may spare) *slab {
	for {
		keys := d.oldest(may)
		if len(keys) == 0 {
			return nil
		}
		first := keys[0]
		if d.config.First != nil {
			for _, k := range keys[1:] {
				if d.config.First(k, first) {
					first = k
				}
			}
		}
		if s := d.leaveIdle(first); s != nil {
			return s
		}
	}
}

// oldest are keys of slabs that no rank has open and that may go, the least recently
// used first. Those that may not go count as used now, so that the next call finds
// others.
func (d *directory) oldest(may spare) []Key {
	switch {
	case may != nil:
		keys := slices.DeleteFunc(d.idle(looked), func(k Key) bool {
			stays := !may(k)
			if stays {
				d.touch(k)
			}
			return stays
		})
		return keys[:min(len(keys), sample)]
	case d.config.First == nil:
		return d.idle(1)
	}
	return d.idle(sample)
}

// touch counts a slab as used.
func (d *directory) touch(k Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id := d.find(k); id != 0 {
		d.mu.slabs.touch(id)
	}
}

// looked bounds the slabs that one call of oldest offers to may.
const looked = 1024

// idle are at most so many keys of slabs that no rank has open, the least recently
// used first.
func (d *directory) idle(most int) []Key {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.place == nil {
		return nil
	}
	var keys []Key
	for id := range d.mu.slabs.oldest() {
		if len(keys) == most {
			break
		}
		if d.mu.held[id] == nil {
			keys = append(keys, d.mu.slabs.key(id))
		}
	}
	return keys
}

// leaveIdle takes the slab of k out of those that may be opened, or returns nil if a
// rank has opened it meanwhile.
func (d *directory) leaveIdle(k Key) *slab {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := d.find(k)
	if d.mu.held[id] != nil {
		return nil
	}
	s := d.hold(id)
	d.drop(s)
	return s
}

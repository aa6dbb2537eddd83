package cache

import (
	"context"
	"fmt"
	"time"

	"rankfs/cache/disks"
	"rankfs/meta"
)

// Limits of memory and disks that change while the cache runs.

// Allow sets how much of its budget memory may take now, and whether anything
// may be made ready ahead. Slabs beyond it go at once, but for those that ranks hold
// or map.
func (c *Cache) Allow(bytes int64, ahead bool) {
	c.mu.Lock()
	c.mu.limits.strained = !ahead
	c.mu.limits.allowed = bytes
	c.bound()
	c.mu.queue.wake.Broadcast()
	c.mu.Unlock()
	c.shrink()
	c.choosing.soon()
}

// Yield says how much of the budget other parts of the daemon have, which need not ask.
// Slabs make way as they do for Allow.
func (c *Cache) Yield(bytes int64) {
	c.mu.Lock()
	changed := bytes != c.mu.limits.yielded
	c.mu.limits.yielded = bytes
	c.bound()
	c.mu.Unlock()
	if changed {
		c.shrink()
		c.choosing.soon()
	}
}

// bound sets what slabs may take: enough to serve a batch at least. c.mu is held.
func (c *Cache) bound() {
	c.ram.budget.Store(max(min(c.mu.limits.allowed, c.config.RAMBytes-c.mu.limits.yielded), minRAM))
}

func (c *Cache) shrink() {
	for !c.ram.fits() {
		c.mu.Lock()
		victim := c.mu.eviction.victim(nil, true)
		c.mu.Unlock()
		if victim == nil {
			break
		}
		c.store.evict(victim)
	}
}

// Held is the number of bytes of memory that slabs take, of any form.
func (c *Cache) Held() int64 {
	c.ram.mu.Lock()
	defer c.ram.mu.Unlock()
	return c.ram.mu.used
}

// reserveWait is how long slabs that are being filled, or mapped by a rank, are
// waited for: a fill takes a second or two.
const reserveWait = 10 * time.Second

// Folders are the folders of a name in the NVMe directories that can be read now, for files
// that are not slabs.
func (c *Cache) Folders(name string) []*disks.Folder {
	if c.nvme == nil {
		return nil
	}
	return c.nvme.Folders(name)
}

// Reserve counts bytes of an NVMe directory's budget as used, by files that are
// not slabs, until the reservation is released: of the directory in, or of any that has
// room for files to come if it is empty. Slabs make way for them, but not those
// that ranks hold. The error wraps meta.ErrNoSpace if there is no room, now or
// ever.
func (c *Cache) Reserve(ctx context.Context, bytes int64, in string) (*disks.Reservation, error) {
	if c.nvme == nil {
		return nil, fmt.Errorf("%w: there is no disk for it; mount with --nvme DIR:SIZE", meta.ErrNoSpace)
	}
	r, err := c.nvme.Reserve(bytes, in)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, reserveWait, fmt.Errorf(
		"%w: ranks hold too much of the nvme budget of %d to reserve %d bytes; try again when they read something else, or give --nvme a larger SIZE",
		meta.ErrNoSpace, r.Dir().Bytes, bytes))
	defer cancel()
	for !c.charge(r) {
		if in == "" {
			if other := c.nvme.Elsewhere(r, c.charge); other != nil {
				r.Release()
				return other, nil
			}
		}
		select {
		case <-ctx.Done():
			r.Release()
			return nil, context.Cause(ctx)
		case <-time.After(roomPoll):
		}
	}
	return r, nil
}

// charge has slabs make way for a reservation: those on the disk that are not open, and
// those that the cache alone keeps open.
func (c *Cache) charge(r *disks.Reservation) bool {
	for !r.Charge() {
		c.mu.Lock()
		victim := c.mu.eviction.victimOnNVMe(r.Dir().Path)
		c.mu.Unlock()
		if victim == nil {
			return false
		}
		c.store.evict(victim)
	}
	return true
}

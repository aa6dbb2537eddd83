package cache

import (
	"context"
	"fmt"
	"time"

	"rankfs/meta"
)

// What the cache may take of memory and disks while it runs.

// Allow sets how much of its budget memory may take now, and whether anything
// may be made ready ahead. What is over it goes at once, but for what ranks hold
// or map.
func (c *Cache) Allow(bytes int64, ahead bool) {
	c.ram.budget.Store(min(max(bytes, minRAM), c.config.RAMBytes))
	c.mu.Lock()
	c.mu.strained = !ahead
	c.mu.queue.wake.Broadcast()
	c.mu.Unlock()
	for !c.ram.fits() {
		c.mu.Lock()
		victim := c.mu.eviction.victim(nil, true)
		c.mu.Unlock()
		if victim == nil {
			break
		}
		c.store.evict(victim)
	}
	c.planning.soon()
}

// Held is how many bytes of memory slabs take, of any form.
func (c *Cache) Held() int64 {
	c.ram.mu.Lock()
	defer c.ram.mu.Unlock()
	return c.ram.mu.used
}

// reserveWait is how long slabs that are being filled, or mapped by a rank, are
// waited for: a fill takes a second or two.
const reserveWait = 10 * time.Second

// Directories are those of NVMe that can be read now.
func (c *Cache) Directories() []string {
	if c.nvme == nil {
		return nil
	}
	return c.nvme.Readable()
}

// Reserve counts bytes of an NVMe directory's budget as used, by files that are
// not slabs, until release is called: of the directory in, or of any that has
// room for files to come if it is empty. Slabs make way for them, but not those
// that ranks hold. The error wraps meta.ErrNoSpace if there is no room, now or
// ever.
func (c *Cache) Reserve(ctx context.Context, bytes int64, in string) (dir string, release func(), err error) {
	if c.nvme == nil {
		return "", nil, fmt.Errorf("%w: there is no disk for it; mount with --nvme DIR:SIZE", meta.ErrNoSpace)
	}
	claim, err := c.nvme.Claim(bytes, in)
	if err != nil {
		return "", nil, err
	}
	disk := claim.Dir()
	ctx, cancel := context.WithTimeoutCause(ctx, reserveWait, fmt.Errorf(
		"%w: ranks hold too much of the nvme budget of %d to reserve %d bytes; try again when they read something else, or give --nvme a larger SIZE",
		meta.ErrNoSpace, disk.Bytes, bytes))
	defer cancel()
	for !claim.Settle() {
		c.mu.Lock()
		victim := c.mu.eviction.victimOnNVMe(disk.Path)
		c.mu.Unlock()
		if victim != nil {
			c.store.evict(victim)
			continue
		}
		select {
		case <-ctx.Done():
			claim.Release()
			return "", nil, context.Cause(ctx)
		case <-time.After(roomPoll):
		}
	}
	return disk.Path, claim.Release, nil
}

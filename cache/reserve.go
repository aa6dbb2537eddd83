package cache

import (
	"context"
	"fmt"
	"sync"
	"time"

	"rankfs/meta"
)

// reserveWait is how long slabs that are being filled, or mapped by a rank, are
// waited for: a fill takes a second or two.
const reserveWait = 10 * time.Second

// Reserve counts bytes of the NVMe tier's budget as used, by files that others
// keep on the same disk, until release is called. Slabs make way for them, but
// not those that ranks hold. The error wraps meta.ErrNoSpace if there is no
// room, now or ever.
func (c *Cache) Reserve(ctx context.Context, bytes int64) (release func(), err error) {
	if c.nvme == nil {
		return nil, fmt.Errorf("%w: there is no disk for it; mount with --nvme DIR:SIZE", meta.ErrNoSpace)
	}
	if err := c.nvme.claim(bytes); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, reserveWait, fmt.Errorf(
		"%w: ranks hold too much of the nvme budget of %d to reserve %d bytes; try again when they read something else, or give --nvme a larger SIZE",
		meta.ErrNoSpace, c.config.NVMeBytes, bytes))
	defer cancel()
	for !c.nvme.settle(bytes) {
		if c.nvme.shrink() {
			continue
		}
		if e := c.victimOnNVMe(); e != nil {
			c.evict(e)
			continue
		}
		select {
		case <-ctx.Done():
			c.nvme.unclaim(bytes)
			return nil, context.Cause(ctx)
		case <-time.After(roomPoll):
		}
	}
	return sync.OnceFunc(func() { c.nvme.release(bytes) }), nil
}

// victimOnNVMe takes an entry that nobody holds and whose slab is on NVMe out
// of the cache: in it the slab cannot be evicted.
func (c *Cache) victimOnNVMe() *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := c.mu.spent.Front(); p != nil; p = p.Next() {
		if e := p.Value.(*entry); e.file != nil {
			return c.remove(e)
		}
	}
	for _, e := range c.mu.idle {
		if e.file != nil {
			return c.remove(e)
		}
	}
	return nil
}

// claim keeps bytes that are in the budget from slabs to come.
func (n *nvme) claim(bytes int64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if taken := n.mu.others + n.mu.claims; bytes > n.budget-taken {
		return fmt.Errorf("%w: %d bytes, nvme budget of %d, %d of it for other files; give --nvme a larger SIZE, or remove datasets whose copies are there",
			meta.ErrNoSpace, bytes, n.budget, taken)
	}
	n.mu.claims += bytes
	return nil
}

func (n *nvme) unclaim(bytes int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.claims -= bytes
}

// settle reserves claimed bytes, if slabs have made way.
func (n *nvme) settle(bytes int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.used+bytes > n.budget {
		return false
	}
	n.mu.claims -= bytes
	n.mu.others += bytes
	n.mu.used += bytes
	return true
}

func (n *nvme) release(bytes int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.others -= bytes
	n.mu.used -= bytes
}

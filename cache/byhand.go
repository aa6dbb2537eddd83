package cache

import (
	"context"
	"fmt"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/stall"
)

// Prepare makes a batch ready for whoever opens it next, on the caller's
// goroutine. It takes the place of nothing that a reader is known to come to, nor
// on a disk of what was pinned or is of the same plan: the error then wraps
// meta.ErrNoSpace.
func (c *Cache) Prepare(ctx context.Context, p Plan, rank, step uint64) error {
	now := time.Now()
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		return fmt.Errorf("prepare batch: %w", errClosing)
	}
	k := p.Key(rank, step)
	if c.mu.slabs.idle.find(k, false) != 0 {
		c.mu.Unlock()
		c.store.shelve(k)
		return nil
	}
	e, mine := c.mu.slabs.want(p, rank, step)
	if mine {
		c.mu.slabs.begin(e, &c.mu.queue.others, stall.Plan)
		e.byHand, e.last = true, now // as if it had been used
		c.mu.Unlock()
		c.workers.make(e, false)
		c.mu.Lock()
	}
	if e.state != filling { // by others, or an open has come meanwhile
		err := e.err
		c.mu.Unlock()
		c.store.shelve(k)
		return err
	}
	e.waiters++
	c.mu.Unlock()
	s, err := c.await(ctx, e)
	if err == nil {
		s.Release()
		c.store.shelve(k)
	}
	return err
}

// shelve closes a slab on disk that nobody has open: there may be more of them
// than files that can be open.
func (st *store) shelve(k Key) {
	st.mu.Lock()
	var e *entry
	if id := st.mu.slabs.idle.find(k, false); id != 0 && st.mu.slabs.idle.file(id) != nil {
		e = st.mu.eviction.remove(id)
	}
	st.mu.Unlock()
	if e != nil {
		st.descriptors.discard(e)
	}
}

// discard gives up a batch in all its forms. It reports whether nothing is left:
// what ranks hold stays.
func (c *Cache) discard(k Key) bool {
	c.mu.Lock()
	var gone []*entry
	held := c.mu.slabs.entries[k] != nil
	for _, packed := range []bool{false, true} {
		if id := c.mu.slabs.idle.find(k, packed); id != 0 {
			gone = append(gone, c.mu.eviction.remove(id))
		}
	}
	c.mu.Unlock()
	for _, e := range gone {
		c.store.drop(e)
	}
	if c.nvme != nil && !held {
		c.nvme.Drop(disks.Key(k))
	}
	return !held
}

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

// fits gives spare files back until what is used is within the budget, if that
// is enough.
func (r *ram) fits() bool {
	r.mu.Lock()
	discard, err := r.set(0, 0)
	r.mu.Unlock()
	for _, d := range discard {
		d.close()
	}
	return err == nil
}

package cache

import (
	"context"

	"rankfs/cache/stall"
)

// stalled is await for an open, whose wait is accounted for.
func (c *Cache) stalled(ctx context.Context, o *stall.Open, e *entry, w stall.Wait) (*Slab, error) {
	o.Wait(w)
	s, err := c.await(ctx, e)
	split := w.Split()
	o.Resume(split)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.count.waits = c.mu.count.waits.Add(split)
	delete(c.mu.crowds.waits, o.By())
	if s != nil {
		s.openedBy(o.By())
	}
	return s, err
}

// Workers is how many batches are filled at a time, if so many are wanted.
func (c *Cache) Workers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.fills.AtOnce()
}

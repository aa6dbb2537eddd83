package cache

import (
	"fmt"
	"time"

	"rankfs/meta"
)

// A Crowd is why an open was refused: ranks that take each step together hold so
// much of this one that the batch does not fit beside it, however long one
// waits, and there is no disk to serve it from. It wraps meta.ErrNoSpace.
type Crowd struct {
	Step    uint64
	Batches int   // of that step, that ranks hold
	Held    int64 // what these take
	Size    int64 // of the one that was opened
	Memory  int64
}

func (c *Crowd) Error() string {
	return fmt.Sprintf("the %d batches of step %d that ranks hold take %d bytes of memory, and another of %d bytes does not fit beside them in %d: %v",
		c.Batches, c.Step, c.Held, c.Size, c.Memory, meta.ErrNoSpace)
}

func (c *Crowd) Unwrap() error { return meta.ErrNoSpace }

// crowdWait is how long a batch has to be held to count: a rank that reads its
// batch and closes it lets go within a moment, and others get on.
const crowdWait = time.Second

// crowd reports whether an open that found no room is one of a crowd. Batches of
// other steps do not count: who is behind will close what it holds. Those that
// are held are looked at once in crowdWait for each fill. mu is held.
func (c *Cache) crowd(e *entry, now time.Time) error {
	if c.nvme != nil {
		return nil
	}
	if e.looked.IsZero() {
		e.looked = now
	}
	if now.Sub(e.looked) < crowdWait {
		return nil
	}
	e.looked = now
	rank, step, ok := e.plan.Find(e.key)
	if !ok {
		return nil
	}
	its := Crowd{Step: step, Size: e.size, Memory: c.config.RAMBytes}
	id := e.plan.ID()
	for _, h := range c.mu.entries {
		if h.holders == 0 || !h.inMemory() || now.Sub(h.since) < crowdWait || h.plan.ID() != id {
			continue
		}
		if r, s, ok := e.plan.Find(h.key); ok && s == step && r != rank {
			its.Batches, its.Held = its.Batches+1, its.Held+pages(h.size)
		}
	}
	if its.Held+pages(e.size) <= its.Memory {
		return nil
	}
	return &its
}

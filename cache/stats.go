package cache

import (
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/pack"
	"rankfs/cache/policy"
)

// Stats is a snapshot of a cache. What follows Recycled is gauges, and zero after Close,
// as Handles is.
type Stats struct {
	Counts
	FillCost Cost // of fills from sources, of late
	Recycled uint64

	RAM    TierStats
	Packed pack.Stats    // in what RAM has of Others
	NVMe   []disks.Stats // one for each directory
}

// Stats is a snapshot of the cache's counters and content.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	s := Stats{Counts: c.mu.count, FillCost: c.mu.rates.from[policy.Source].parts()}
	c.mu.Unlock()
	s.RAM, s.Recycled = c.ram.stats()
	s.Packed = c.packed.store.Stats()
	if c.nvme != nil {
		s.NVMe = c.nvme.Stats()
	}
	return s
}

// Workers is the number of batches that are filled at a time, if so many are wanted.
func (c *Cache) Workers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.rates.fills.AtOnce()
}

// Lacked is the room that memory had not when an open last waited for some; nil if none has.
func (c *Cache) Lacked() *Shortage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.room.when.IsZero() {
		return nil
	}
	lacked := c.mu.room.lacked
	return &lacked
}

// Shortage is the room that an open waits for now, or for lack of which one was
// refused in the last minute, if it will be again.
func (c *Cache) Shortage() *Shortage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.room.recent(time.Now())
}

package cache

import (
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/stall"
)

type counters struct {
	opens, ready, waited, openErrors uint64
	fills, fillBytes, fillErrors     uint64
	prefetched, evicted, restored    uint64
	unpacked, converted, plans, late uint64
	waits                            stall.Split // of opens
	fillTime, planTime               time.Duration
	handles                          int
}

// Stats is a snapshot of a cache. Those up to Waits are totals; the rest
// are gauges, and zero after Close.
type Stats struct {
	Opens, OpensReady, OpensWaited, OpenErrors uint64
	Fills, FillBytes, FillErrors               uint64
	Prefetched, Evicted, Restored, Recycled    uint64
	Unpacked, Converted, Plans                 uint64
	Late                                       uint64 // copies that were made when their room was needed
	WaitTime, FillTime                         time.Duration
	PlanTime                                   time.Duration // of a processor
	Waits                                      stall.Split   // WaitTime by cause

	Handles int
	Readers int
	RAM     TierStats
	Packed  PackedStats   // in what RAM has of Others
	NVMe    []disks.Stats // one for each directory
}

// TierStats counts the content of the RAM tier, in real bytes.
type TierStats struct {
	Budget int64
	Used   int64
	Dying  int64 // part of Used: given up, but still mapped by a rank
	Spare  int64 // part of Used: ready to be filled again
	Others int64 // part of Used: of what is not slabs
	Slabs  int
}

// PackedStats counts the slabs compressed in memory.
type PackedStats struct {
	Used    int64 // real bytes
	Plain   int64 // that they unpack to
	Slabs   int
	Damaged uint64 // found to differ from their checksums, and not served
}

// Stats is a snapshot of the cache's counters and content.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	c.mu.readers.dropSilent(time.Now())
	n := c.mu.count
	s := Stats{
		Opens: n.opens, OpensReady: n.ready, OpensWaited: n.waited, OpenErrors: n.openErrors,
		Fills: n.fills, FillBytes: n.fillBytes, FillErrors: n.fillErrors,
		Prefetched: n.prefetched, Evicted: n.evicted, Restored: n.restored,
		Unpacked: n.unpacked, Converted: n.converted, Late: n.late, Plans: n.plans, PlanTime: n.planTime,
		WaitTime: n.waits.Sum(), Waits: n.waits, FillTime: n.fillTime,
		Handles: n.handles, Readers: c.mu.readers.count,
	}
	c.mu.Unlock()
	s.RAM, s.Recycled = c.ram.stats()
	p := c.packed.store.Stats()
	s.Packed = PackedStats{Used: p.Used, Plain: p.Plain, Slabs: p.Slabs, Damaged: p.Damaged}
	if c.nvme != nil {
		s.NVMe = c.nvme.Stats()
	}
	return s
}

// Workers is how many batches are filled at a time, if so many are wanted.
func (c *Cache) Workers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.rates.fills.AtOnce()
}

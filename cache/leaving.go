package cache

import (
	"math"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/policy"
)

// reserveShare is the part of memory, inverted, that is kept free at most, but for
// one batch.
const reserveShare = 16

// keepReserve packs and writes what is to leave memory before its room is needed,
// so that no open waits for that: one that finds no free memory takes the place of
// what goes first, copied or not. As long as nothing is filled, or what goes first
// can be dropped as it is, nothing is kept free.
func (c *Cache) keepReserve() {
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.leaving:
		}
		for e := c.leaver(); e != nil; e = c.leaver() {
			c.evict(e)
			c.freed()
		}
	}
}

// stirs says that memory was filled, and something of it may leave. mu is held.
func (c *Cache) stirs() {
	if !c.mu.filled {
		return
	}
	select {
	case c.leaving <- struct{}{}:
	default:
	}
}

// freed has those look again who found no room.
func (c *Cache) freed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.mu.jobs {
		for _, r := range j.readers {
			r.bar = false
		}
	}
	c.wake.Signal()
	select {
	case c.room <- struct{}{}:
	default:
	}
}

// leaver takes what goes first out of the cache if less than the reserve is free,
// and if there is something to be done before it can be dropped; or returns nil.
func (c *Cache) leaver() *entry {
	k, ok := c.leaves(c.ram.free())
	if !ok {
		return nil
	}
	unknown := !c.packed.knows(k.plan.Dataset())
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := c.mu.shelf.find(k.key, false); id != 0 && !c.mu.shelf.isSpent(id) && (unknown || c.laborious(&k)) {
		return c.remove(id)
	}
	return nil
}

// leaves is what goes first, if less than the reserve is free. What is pinned to
// memory does not leave for it, nor what was made ready for somebody and not
// opened yet: of that what comes after it goes.
func (c *Cache) leaves(free int64) (k kept, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if free >= c.reserve() {
		c.mu.filled = false
		return k, false
	}
	if !c.mu.filled || c.mu.closed || len(c.mu.stale)+c.mu.shelf.spent.Len() > 0 {
		return k, false
	}
	id, worth := c.least(time.Now())
	if id == 0 || math.IsInf(worth, 1) {
		return k, false
	}
	k = c.mu.shelf.at(id)
	if !k.opened && (k.byHand || c.comesTo(k.key)) {
		return c.leavesNext()
	}
	return k, k.inMemory() && !c.isPacked(k.key)
}

// leaveLook bounds how many of those that go first are looked through.
const leaveLook = 64

// leavesNext is about the first that was opened, and has to be packed or written.
// mu is held.
func (c *Cache) leavesNext() (best kept, ok bool) {
	least, looked, now := math.Inf(1), 0, time.Now()
	for id := range c.mu.shelf.lanes.all() {
		k := c.mu.shelf.at(id)
		if k.opened && c.laborious(&k) {
			if worth := c.worthAt(&k, c.nextUse(&k, now)); worth < least {
				best, least, ok = k, worth, true
			}
		}
		if looked++; looked == leaveLook {
			break
		}
	}
	return best, ok
}

// reserve is the memory that is to be free: a batch for each reader, within a part
// of the budget, and for one batch at least. mu is held.
func (c *Cache) reserve() (bytes int64) {
	largest := int64(0)
	for _, j := range c.mu.jobs {
		for _, r := range j.readers {
			bytes += pages(r.size)
			largest = max(largest, pages(r.size))
		}
	}
	return max(largest, min(bytes, c.ram.budget.Load()/reserveShare))
}

// forgo drops a victim for an open that waits, copied or not, unless it is pinned:
// who did that relies on it.
func (c *Cache) forgo(victim *entry) {
	c.mu.Lock()
	pinned := c.mu.pins[victim.key.Plan] != policy.Source && c.laborious(&victim.kept)
	c.mu.Unlock()
	if pinned {
		c.evict(victim)
	} else {
		c.drop(victim)
	}
}

// laborious reports whether k is to be packed or written when it leaves memory. mu
// is held.
func (c *Cache) laborious(k *kept) bool {
	if !k.inMemory() || c.passes(k) || c.isPacked(k.key) {
		return false
	}
	at, known := c.mu.targets.of(k.key)
	if _, pays := c.mu.packing[k.key.Plan]; at == policy.Packed && pays && !k.dense {
		return true
	}
	return (!known || at >= policy.Disk) && c.nvme != nil && !c.nvme.Has(disks.Key(k.key))
}

// free is the memory that nothing has.
func (r *ram) free() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	free := r.budget.Load() - r.mu.used
	for _, f := range r.mu.spare {
		free += f.real
	}
	return free
}

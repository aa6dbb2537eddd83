package cache

import (
	"math"
	"slices"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/fair"
	"rankfs/cache/policy"
)

// rest lays down an entry that nobody holds, where a victim is looked for. mu is
// held.
func (c *Cache) rest(e *entry) {
	if c.mu.ended {
		return
	}
	now := time.Now()
	if e.opened {
		if !e.last.IsZero() {
			e.gap = blend(e.gap, now.Sub(e.last))
		}
		e.last = now
	}
	if e.stale {
		c.mu.stale = append(c.mu.stale, e)
	} else {
		delete(c.mu.entries, e.key)
		if id := c.mu.shelf.find(e.key, true); id != 0 {
			b := c.mu.shelf.at(id)
			b.last, b.gap = e.last, e.gap
			c.mu.shelf.change(id, b, c.place(&b))
		}
		c.lay(e.kept)
	}
	select {
	case c.room <- struct{}{}:
	default:
	}
}

// lay puts what nobody holds on the shelf. mu is held.
func (c *Cache) lay(k kept) {
	spent := !k.packed && k.opened && c.passes(&k) && !k.plan.Shared()
	c.mu.shelf.put(k, spent, c.place(&k))
}

// passes reports whether k is of no use to anybody once it was read, as nobody
// pinned it. mu is held.
func (c *Cache) passes(k *kept) bool {
	return k.plan.Once() && c.mu.pins[k.key.Plan] == policy.Source
}

// victim takes the entry that is to go next out of the cache, or returns nil:
// what is stale or spent, in order, then what the newcomer's party has a claim on, and
// then what is worth least. One that a rank waits for may take anything's place,
// another that of what is claimed or worth less. mu must not be held.
func (c *Cache) victim(newcomer *entry, demanded bool) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.useless(0); e != nil {
		return e
	}
	now := time.Now()
	var p Plan
	if newcomer != nil {
		p = newcomer.plan
	}
	id, worth, claim := c.least(p, now)
	if id == 0 {
		return nil
	}
	if !demanded && claim != fair.Claimed {
		least := c.mu.shelf.at(id)
		if claim == fair.Kept || worth >= c.worthAt(&newcomer.kept, c.wanted(newcomer, now)) || c.precedes(&least, newcomer, now) {
			return nil
		}
	}
	return c.remove(id)
}

// useless takes the oldest entry that nobody has a use for, or returns nil: what
// is stale, and what is spent if that is more than so many. mu is held.
func (c *Cache) useless(spent int) *entry {
	if n := len(c.mu.stale) - 1; n >= 0 {
		e := c.mu.stale[n]
		c.mu.stale = c.mu.stale[:n]
		return e
	}
	if c.mu.shelf.spent.Len() <= spent {
		return nil
	}
	return c.remove(c.mu.shelf.spent.Front().Value.(uint32))
}

// victimOnNVMe takes an entry that nobody holds and whose slab is on NVMe, in that
// directory or in any if it is empty, out of the cache: in it the slab cannot be
// evicted.
func (c *Cache) victimOnNVMe(dir string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	fits := func(f *disks.Slab) bool { return f != nil && (dir == "" || f.Dir() == dir) }
	if i := slices.IndexFunc(c.mu.stale, func(e *entry) bool { return fits(e.file) }); i >= 0 {
		e := c.mu.stale[i]
		c.mu.stale = slices.Delete(c.mu.stale, i, i+1)
		return e
	}
	for id := range c.mu.shelf.inOrder() {
		if fits(c.mu.shelf.file(id)) {
			return c.remove(id)
		}
	}
	return nil
}

// precedes reports whether k waits for a reader that comes to it before n, or if
// n is made ready by hand, for any reader, or as long as n. Worths are estimates
// of different times: two batches that are made ready ahead could otherwise take
// each other's place again and again. mu is held.
func (c *Cache) precedes(k *kept, n *entry, now time.Time) bool {
	if n.byHand {
		return k.byHand && !k.opened || c.comesTo(k.key)
	}
	if k.opened {
		return false
	}
	next := c.nextUse(k, now)
	return !math.IsInf(next, 1) && next <= c.wanted(n, now)
}

// worn returns the oldest spent entry, out of the cache, if more of them linger
// than each reader's last one. They are filled anew before fresh memory is
// taken: it need not be zeroed, it is mapped, and it is in the processor's
// cache, which fresh memory is not.
func (c *Cache) worn() *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.useless(c.mu.readers)
}

// remove takes a batch that nobody holds out of the cache. mu is held.
func (c *Cache) remove(id uint32) *entry {
	e := &entry{kept: c.mu.shelf.take(id), state: ready}
	if !e.packed {
		c.lost(e.key)
	}
	return e
}

// worthAt is what it is worth to keep k in memory, as the planner has it, if it is
// used next at a time. mu is held.
func (c *Cache) worthAt(k *kept, next float64) float64 {
	item := c.item(k)
	return c.mu.planner.Worth(&item, next)
}

// item is what a planner wants to know of k. If its bytes are in memory in
// another form too, that is all that is lost with it. mu is held.
func (c *Cache) item(k *kept) policy.Item {
	i := policy.Item{Now: k.level(), Group: -1, Job: -1, Last: c.seconds(k.last), Floor: c.mu.pins[k.key.Plan]}
	i.Bytes[policy.Packed], i.Wait[policy.Source] = k.real, k.took.Seconds()
	describe(&i, k.size, c.mu.packing[k.key.Plan], &c.mu.speeds, c.mu.writes, c.nvme != nil)
	if !k.packed && c.isPacked(k.key) {
		i.Wait[policy.Source], i.Floor = i.Wait[policy.Packed], policy.Source
	}
	return i
}

// seconds is a time on the planner's clock.
func (c *Cache) seconds(t time.Time) float64 {
	if t.IsZero() {
		return -1
	}
	return t.Sub(c.began).Seconds()
}

package cache

import "rankfs/cache/policy"

// A Holding is what there is of a plan's batches at each level: how many, and
// their real bytes. A batch that is there in two forms counts twice.
type Holding struct {
	Batches [policy.Levels]int
	Bytes   [policy.Levels]int64
}

func (h *Holding) add(at policy.Level, batches int, bytes int64) {
	h.Batches[at] += batches
	h.Bytes[at] += bytes
}

// Total is the bytes at all levels.
func (h Holding) Total() (bytes int64) {
	for _, n := range h.Bytes {
		bytes += n
	}
	return bytes
}

// Holdings is what there is of each plan, by the name in the keys of its batches. A
// batch that is opened or given back meanwhile may count twice, or not.
func (c *Cache) Holdings() map[[16]byte]Holding {
	all := make(map[[16]byte]Holding)
	if c.nvme != nil {
		for plan, n := range c.nvme.Holdings() {
			h := Holding{}
			h.add(policy.Disk, n.Slabs, n.Bytes)
			all[plan] = h
		}
	}
	add := func(k kept) {
		h := all[k.key.Plan]
		switch {
		case k.packed:
			h.add(policy.Packed, 1, k.real)
		case k.inMemory():
			h.add(policy.RAM, 1, pages(k.size))
		}
		all[k.key.Plan] = h
	}
	c.mu.Lock()
	for _, e := range c.mu.slabs.entries {
		if e.state == ready {
			add(e.kept)
		}
	}
	c.mu.Unlock()
	c.mu.walk(func(id uint32) bool {
		add(c.mu.slabs.idle.at(id))
		return true
	})
	return all
}

// DiscardAll gives up all batches whose key names a plan, but for what ranks
// hold or is being made, and reports how many there were of each. Nothing is on its
// way between memory and disk meanwhile.
func (c *Cache) DiscardAll(plan [16]byte) (gone, held int) {
	c.mover.moving.Lock()
	defer c.mover.moving.Unlock()
	for k := range c.keys(plan) {
		if c.discard(k) {
			gone++
		} else {
			held++
		}
	}
	return gone, held
}

// keys are those of all there is of a plan.
func (c *Cache) keys(plan [16]byte) map[Key]struct{} {
	keys := make(map[Key]struct{})
	if c.nvme != nil {
		for _, k := range c.nvme.Keys(plan) {
			keys[Key(k)] = struct{}{}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.mu.slabs.entries {
		if k.Plan == plan {
			keys[k] = struct{}{}
		}
	}
	for id := range c.mu.slabs.idle.all() {
		if k := c.mu.slabs.idle.name(id).key; k.Plan == plan {
			keys[k] = struct{}{}
		}
	}
	return keys
}

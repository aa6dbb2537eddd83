package cache

import (
	"rankfs/cache/policy"
	"rankfs/meta"
)

// A Holding counts the batches of a series that the cache has at each level, and
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

// Holdings has the Holding of each series, by the name in the keys of its batches. A
// batch that is opened or given back meanwhile may count twice, or not.
func (c *Cache) Holdings() map[[16]byte]Holding {
	all := make(map[[16]byte]Holding)
	if c.nvme != nil {
		for series, n := range c.nvme.Holdings() {
			h := Holding{}
			h.add(policy.Disk, n.Slabs, n.Bytes)
			all[series] = h
		}
	}
	add := func(b batch) {
		h := all[b.key.Series]
		switch {
		case b.packed:
			h.add(policy.Packed, 1, b.real)
		case b.inMemory():
			h.add(policy.RAM, 1, meta.WholePages(b.size))
		}
		all[b.key.Series] = h
	}
	c.mu.Lock()
	for _, e := range c.mu.slabs.entries {
		if e.state == ready {
			add(e.batch)
		}
	}
	c.mu.Unlock()
	c.mu.walk(func(id uint32) bool {
		add(c.mu.slabs.idle.at(id))
		return true
	})
	return all
}

// DiscardAll gives up all batches whose key names a series, except those that ranks hold
// or workers fill, and reports how many there were of each. No batch moves between
// memory and disk meanwhile.
func (c *Cache) DiscardAll(series [16]byte) (gone, held int) {
	c.mover.moving.Lock()
	defer c.mover.moving.Unlock()
	for k := range c.keys(series) {
		if c.Discard(k) {
			gone++
		} else {
			held++
		}
	}
	return gone, held
}

// Discard gives up a batch in all its forms. It reports whether nothing is left:
// what ranks hold stays.
func (c *Cache) Discard(k Key) bool {
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
		c.nvme.Drop(k)
	}
	return !held
}

// keys are the keys of all that is here of a series.
func (c *Cache) keys(series [16]byte) map[Key]struct{} {
	keys := make(map[Key]struct{})
	if c.nvme != nil {
		for _, k := range c.nvme.Keys(series) {
			keys[k] = struct{}{}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.slabs.keys(series, keys)
	return keys
}

package cache

import (
	"rankfs/cache/policy"
	"rankfs/meta"
)

// maxPromotions bounds the batches brought up between two choices, which are at
// least a second apart: more than a disk can read, unless batches are small.
const maxPromotions = 1 << 14

// nextPromotion takes the batch to bring up next.
func (g *guarded) nextPromotion() (p promotion, ok bool) {
	if len(g.moves.up) == 0 || g.limits.strained || g.life.closed {
		return p, false
	}
	p, g.moves.up = g.moves.up[0], g.moves.up[1:]
	return p, true
}

// stillDue reports whether a batch is still to be brought up, and completes its entry
// from its status.
func (g *guarded) stillDue(e *entry) bool {
	now := policy.Disk
	for _, packed := range []bool{true, false} {
		if id := g.slabs.idle.find(e.key, packed); id != 0 {
			b := g.slabs.idle.at(id)
			now, e.history = max(now, b.level()), b.history
		}
	}
	at, known := g.strategy.targets.of(e.key)
	return known && at > now && g.slabs.entries[e.key] == nil && !g.eviction.readOnce(&e.batch)
}

// swap has a batch in memory become idle in the place of its slab on a disk, which the
// caller is to give up, unless the batch is open or in memory by now.
func (g *guarded) swap(e *entry) (old *entry, swapped bool) {
	if g.slabs.entries[e.key] != nil {
		return nil, false
	}
	if id := g.slabs.idle.find(e.key, false); id != 0 {
		there := g.slabs.idle.at(id)
		if there.inMemory() {
			return nil, false
		}
		e.history = there.history
		old = &entry{batch: g.slabs.idle.take(id)}
	}
	g.eviction.addIdle(e.batch)
	g.count.Converted++
	return old, true
}

// nextMisplaced finds an idle batch that is not where it should be. It is taken to be
// copied, but a packed copy that is not needed is taken away; of one that is to be
// written to a disk, what is known is returned.
func (g *guarded) nextMisplaced() (e *entry, ok bool) {
	for n := len(g.moves.down); n > 0 && !g.queue.full() && !g.limits.strained && !g.life.closed; n = len(g.moves.down) {
		id := g.moves.down[n-1]
		g.moves.down = g.moves.down[:n-1]
		if !g.slabs.idle.has(id) {
			continue
		}
		b := g.slabs.idle.at(id) // which may be another one by now
		_, there := g.slabs.ready(b.key)
		switch {
		case !g.eviction.misplaced(&b):
		case b.packed && there:
			return g.eviction.remove(id), true
		case b.packed:
			return &entry{batch: b}, true
		default:
			return g.takeToCopy(id, b.inSlot), true
		}
	}
	return nil, false
}

// nextToLeave takes the next victim that has to be copied before it is evicted, or of whose
// dataset it is not known yet whether packing pays; nil if there is none, or if the free
// bytes have room for copiedAhead more. A batch that a reader is just coming to does not
// leave yet. Each is tried once for each choice. What a fill asks for is first.
func (g *guarded) nextToLeave(free int64) *entry {
	if g.limits.strained || g.life.closed {
		return nil
	}
	if g.moves.tried == nil {
		g.moves.tried = make(map[Key]struct{})
	}
	take := func(id uint32, b *batch) *entry {
		g.moves.tried[b.key] = struct{}{}
		return g.takeToCopy(id, b.inSlot)
	}
	if id := g.moves.asked; id != 0 {
		g.moves.asked = 0
		if g.slabs.idle.has(id) {
			if b := g.slabs.idle.at(id); g.deserves(&b) && !b.packed {
				return take(id, &b)
			}
		}
	}
	looked := 0
	for id := range g.slabs.idle.heaps.all() {
		b := g.slabs.idle.at(id)
		if looked++; looked > copiedAhead || free > copiedAhead*meta.WholePages(b.size) {
			return nil
		}
		if _, tried := g.moves.tried[b.key]; tried || !g.eviction.needsCopy(&b) && !g.samples(&b) {
			continue
		}
		if len(g.moves.tried) >= maxPromotions {
			return nil
		}
		return take(id, &b)
	}
	return nil
}

// samples reports whether codecs are to be tried on a batch, if it is to leave: what
// drops it has no time for that.
func (g *guarded) samples(b *batch) bool {
	if !b.inMemory() || !b.opened || g.eviction.readOnce(b) || g.slabs.isPacked(b.key) {
		return false
	}
	return g.sampled.take(b.series.Dataset)
}

// takeToCopy takes an idle batch so that nothing evicts it: one in a slot is checked
// out, one in a file is held.
func (g *guarded) takeToCopy(id uint32, inSlot bool) *entry {
	g.moves.copying = true
	if inSlot {
		return g.checkOut(id)
	}
	e := g.slabs.activate(id)
	e.holders, e.copied = e.holders+1, true
	return e
}

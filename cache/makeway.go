package cache

import (
	"time"

	"rankfs/cache/fair"
)

// Making way for a fill that an open waits for. Such a fill copies nothing, as that may
// take as long as the fill: what goes first was copied by the mover, or goes without.

// copiedAhead is how many of the next victims are copied before their room is
// needed.
const copiedAhead = 32

// makeWay takes what makes way for a fill that an open waits for out of the cache, or
// returns nil. It is what goes first; if that deserves a copy that it has not, the first
// of the next that needs none; and if all of these deserve one, what goes first goes
// without. What is pinned does not: the mover is asked to copy it, and the fill waits.
func (g *guarded) makeWay(newcomer *entry, demanded bool) (victim *entry, copies bool) {
	now := time.Now()
	if e := g.eviction.disposable(now); e != nil {
		return e, false
	}
	first := g.eviction.next(newcomer, demanded, now)
	if e := g.eviction.disposable(now); e != nil { // which readers had left
		return e, false
	}
	if first == 0 {
		return nil, g.moves.copying
	}
	b := g.slabs.idle.at(first)
	if !g.deserves(&b) {
		return g.eviction.remove(first), false
	}
	most := g.eviction.priority(&b, newcomer.series)
	goes := func(fits func(*batch) bool) uint32 { return g.among(newcomer.series, most, fits) }
	if id := goes(func(b *batch) bool { return !g.deserves(b) }); id != 0 {
		return g.eviction.remove(id), false
	}
	if g.eviction.pinned(&b) && !g.limits.strained {
		g.moves.asked = first
		if first = goes(func(b *batch) bool { return !g.eviction.pinned(b) }); first == 0 {
			return nil, true
		}
	}
	g.count.CopiedLate++
	return g.eviction.remove(first), false
}

// deserves reports whether a batch should be copied before it leaves memory, which has not
// been tried yet.
func (g *guarded) deserves(b *batch) bool {
	if _, tried := g.moves.tried[b.key]; tried {
		return false
	}
	if b.packed {
		return g.eviction.unwritten(b.key) && g.eviction.worthWriting(b)
	}
	return g.eviction.needsCopy(b)
}

// among is the first of the batches next to go that some rank has had, that fits, and that
// goes by no worse a priority, but for those that are pinned to memory; 0 if there is none.
func (g *guarded) among(s *Series, most fair.Priority, fits func(*batch) bool) uint32 {
	looked := 0
	for id := range g.slabs.idle.heaps.all() {
		if looked++; looked > copiedAhead {
			break
		}
		b := g.slabs.idle.at(id)
		if b.inMemory() && b.opened && g.eviction.priority(&b, s) <= most && fits(&b) && !g.eviction.stays(&b) {
			return id
		}
	}
	return 0
}

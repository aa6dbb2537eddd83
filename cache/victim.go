package cache

import (
	"math"
	"slices"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/fair"
)

// victim takes the batch that is to go next out of the cache, or returns nil if none may. newcomer
// needs the room; it is nil if memory is to be less. One that an open waits for may take the place
// of any batch, one that is made ahead only that of the batch which goes first for its job, or of
// one that is worth less.
func (ev *eviction) victim(newcomer *entry, demanded bool) *entry {
	now := time.Now()
	if e := ev.disposable(now); e != nil {
		return e
	}
	id := ev.next(newcomer, demanded, now)
	if e := ev.disposable(now); e != nil { // which readers had left
		return e
	}
	if id == 0 {
		return nil
	}
	return ev.remove(id)
}

// next is the batch to go next for a newcomer; 0 if there is none.
func (ev *eviction) next(newcomer *entry, demanded bool, now time.Time) uint32 {
	var s *Series
	if newcomer != nil {
		s = newcomer.series
	}
	id, worth, priority := ev.least(s, now)
	if id != 0 && !demanded && priority != fair.First {
		least := ev.slabs.idle.at(id)
		if priority == fair.Last || worth >= ev.worthAt(&newcomer.batch, ev.wanted(newcomer, now)) || ev.precedes(&least, newcomer, now) {
			return 0
		}
	}
	return id
}

// precedes reports whether b waits for a reader that comes to it before n, or if
// n is made ready by hand, for any reader, or as long as n. Worths are estimates
// of different times: two batches that are made ready ahead could otherwise take
// each other's place again and again.
func (ev *eviction) precedes(b *batch, n *entry, now time.Time) bool {
	if n.byHand {
		return b.byHand && !b.opened || ev.readers.comesTo(b.key)
	}
	if b.opened {
		return false
	}
	next := ev.nextUse(b, now)
	return !math.IsInf(next, 1) && next <= ev.wanted(n, now)
}

// disposable takes a stale batch out of the cache, or the oldest spent one; or returns nil.
func (ev *eviction) disposable(now time.Time) *entry {
	if n := len(ev.slabs.stale) - 1; n >= 0 {
		e := ev.slabs.stale[n]
		ev.slabs.stale = ev.slabs.stale[:n]
		return e
	}
	id, _, ok := ev.leastIn(spentHeap, now)
	if !ok {
		return nil
	}
	return ev.remove(id)
}

// victimOnNVMe takes a batch out of the cache whose slab is on NVMe and open nowhere,
// in one directory, or in any if that is empty: as long as the cache has the slab, its
// disk cannot evict it.
func (ev *eviction) victimOnNVMe(dir string) *entry {
	fits := func(f *disks.Slab) bool { return f != nil && (dir == "" || f.Dir() == dir) }
	if i := slices.IndexFunc(ev.slabs.stale, func(e *entry) bool { return fits(e.file) }); i >= 0 {
		e := ev.slabs.stale[i]
		ev.slabs.stale = slices.Delete(ev.slabs.stale, i, i+1)
		return e
	}
	for id := range ev.slabs.idle.inOrder() {
		if fits(ev.slabs.idle.file(id)) {
			return ev.remove(id)
		}
	}
	return nil
}

// unwanted takes a batch out of the cache for b, which no open waits for: one that is not
// wanted where it is, that no reader is just coming to, and that is worth less.
func (ev *eviction) unwanted(b *batch) *entry {
	if e := ev.disposable(time.Now()); e != nil {
		return e
	}
	id := ev.lesser(b)
	if id == 0 {
		return nil
	}
	least := ev.slabs.idle.at(id)
	if at, known := ev.strategy.targets.of(least.key); known && at >= least.level() {
		return nil
	}
	return ev.remove(id)
}

// lessThan takes a batch that is worth less than b out of the cache, or returns nil.
func (ev *eviction) lessThan(b *batch) *entry {
	if id := ev.lesser(b); id != 0 {
		return ev.remove(id)
	}
	return nil
}

// lesser is the batch that goes first, if it is worth less than b and no reader is just coming
// to it; or 0.
func (ev *eviction) lesser(b *batch) uint32 {
	now := time.Now()
	id, worth, priority := ev.least(b.series, now)
	if id == 0 || priority == fair.Last {
		return 0
	}
	least := ev.slabs.idle.at(id)
	if worth >= ev.worthAt(b, ev.nextUse(b, now)) || !least.opened && !math.IsInf(ev.nextUse(&least, now), 1) {
		return 0
	}
	return id
}

// misplacedLooks is how many batches at the begin of a heap are looked at that are in
// the wrong one: their readers left or went elsewhere since they became idle.
const misplacedLooks = 8

// least is the idle batch that goes first, for what a series brings, its worth as of
// now, and the priority; 0 if nothing is idle.
func (ev *eviction) least(s *Series, now time.Time) (id uint32, worth float64, priority fair.Priority) {
	ev.weigh(now)
	for heap := spentHeap - 1; heap >= 0; heap-- { // what is in a wrong heap goes to the first
		n, its, ok := ev.leastIn(uint8(heap), now)
		if !ok {
			continue
		}
		b := ev.slabs.idle.at(n)
		if first := ev.priority(&b, s); id == 0 || first < priority || first == priority && its < worth {
			id, worth, priority = n, its, first
		}
	}
	return id, worth, priority
}

// priority is the priority by which b is evicted for the tenant of a series, nil if there is no
// newcomer. It is Last for a batch that its pin keeps where it is, and Usual for one that is pinned
// lower down, or is of no job, as an input is that fills of several may copy from; a fill that brings
// such an input has none.
func (ev *eviction) priority(b *batch, s *Series) fair.Priority {
	giver := ev.readers.tenants.reading(b.series)
	var taker *tenant
	if s != nil {
		taker = ev.readers.tenants.reading(s)
	}
	switch {
	case ev.pinned(b) && ev.stays(b):
		return fair.Last
	case giver == nil || giver == taker || ev.pinned(b):
		return fair.Usual
	case taker == nil && (giver.standing.Held > giver.standing.Due || giver.standing.Due == ev.budget.Load()): // or all others rest
		return fair.Usual
	case taker == nil:
		return fair.Of(giver.standing, fair.Standing{})
	}
	priority := fair.Of(giver.standing, taker.standing)
	if priority == fair.First && !b.opened {
		return fair.Usual
	}
	return priority
}

// leastIn is the batch that goes first in a heap. In the heap of spent batches it is one that is still
// spent.
func (ev *eviction) leastIn(heap uint8, now time.Time) (id uint32, worth float64, ok bool) {
	o := &ev.slabs.idle.heaps[heap]
	for range misplacedLooks {
		if o.count == 0 {
			return 0, 0, false
		}
		id, worth = o.least()
		b := ev.slabs.idle.at(id)
		next, at, comes := ev.readers.soonest(b.key, now)
		switch right := ev.heapOf(&b, next, comes) == heap; {
		case right && comes:
			return id, ev.worthAt(&b, ev.time.seconds(at)), true
		case right:
			return id, worth, true
		}
		ev.slabs.idle.rank(id, ev.placeFor(&b, next, comes, now))
	}
	return id, worth, o.count > 0 && heap != spentHeap
}

package cache

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/fair"
	"rankfs/cache/policy"
)

// eviction says what goes first.
type eviction struct {
	time     timeline
	budget   *atomic.Int64
	nvme     *disks.Tier
	slabs    *slabs
	readers  *readers
	strategy *strategy
	rates    *rates
}

// rest lays down an entry that nobody holds, where a victim is looked for. mu is
// held.
func (g *guarded) rest(e *entry) {
	if g.ended {
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
		g.slabs.stale = append(g.slabs.stale, e)
	} else {
		delete(g.slabs.entries, e.key)
		if id := g.slabs.idle.find(e.key, true); id != 0 {
			b := g.slabs.idle.at(id)
			b.last, b.gap = e.last, e.gap
			g.slabs.idle.change(id, b, g.eviction.place(&b))
		}
		g.eviction.lay(e.kept)
	}
	select {
	case g.room.token <- struct{}{}:
	default:
	}
}

// lay puts what nobody holds on the shelf. mu is held.
func (ev *eviction) lay(k kept) {
	spent := !k.packed && k.opened && ev.passes(&k) && !k.plan.Shared()
	ev.slabs.idle.put(k, spent, ev.place(&k))
}

// passes reports whether k is of no use to anybody once it was read, as nobody
// pinned it. mu is held.
func (ev *eviction) passes(k *kept) bool {
	return k.plan.Once() && ev.strategy.pins[k.key.Plan] == policy.Source
}

// victim takes the entry that is to go next out of the cache, or returns nil:
// what is stale or spent, in order, then what the newcomer's party has a claim on, and
// then what is worth least. One that a rank waits for may take anything's place,
// another that of what is claimed or worth less. mu must not be held.
func (ev *eviction) victim(newcomer *entry, demanded bool) *entry {
	if e := ev.useless(0); e != nil {
		return e
	}
	now := time.Now()
	var p Plan
	if newcomer != nil {
		p = newcomer.plan
	}
	id, worth, claim := ev.least(p, now)
	if id == 0 {
		return nil
	}
	if !demanded && claim != fair.Claimed {
		least := ev.slabs.idle.at(id)
		if claim == fair.Kept || worth >= ev.worthAt(&newcomer.kept, ev.wanted(newcomer, now)) || ev.precedes(&least, newcomer, now) {
			return nil
		}
	}
	return ev.remove(id)
}

// useless takes the oldest entry that nobody has a use for, or returns nil: what
// is stale, and what is spent if that is more than so many. mu is held.
func (ev *eviction) useless(spent int) *entry {
	if n := len(ev.slabs.stale) - 1; n >= 0 {
		e := ev.slabs.stale[n]
		ev.slabs.stale = ev.slabs.stale[:n]
		return e
	}
	if ev.slabs.idle.spent.Len() <= spent {
		return nil
	}
	return ev.remove(ev.slabs.idle.spent.Front().Value.(uint32))
}

// victimOnNVMe takes an entry that nobody holds and whose slab is on NVMe, in that
// directory or in any if it is empty, out of the cache: in it the slab cannot be
// evicted.
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

// precedes reports whether k waits for a reader that comes to it before n, or if
// n is made ready by hand, for any reader, or as long as n. Worths are estimates
// of different times: two batches that are made ready ahead could otherwise take
// each other's place again and again. mu is held.
func (ev *eviction) precedes(k *kept, n *entry, now time.Time) bool {
	if n.byHand {
		return k.byHand && !k.opened || ev.readers.comesTo(k.key)
	}
	if k.opened {
		return false
	}
	next := ev.nextUse(k, now)
	return !math.IsInf(next, 1) && next <= ev.wanted(n, now)
}

// worn returns the oldest spent entry, out of the cache, if more of them linger
// than each reader's last one. They are filled anew before fresh memory is
// taken: it need not be zeroed, it is mapped, and it is in the processor's
// cache, which fresh memory is not.
func (ev *eviction) worn() *entry {
	return ev.useless(ev.readers.count)
}

// remove takes a batch that nobody holds out of the cache. mu is held.
func (ev *eviction) remove(id uint32) *entry {
	e := &entry{kept: ev.slabs.idle.take(id), state: ready}
	if !e.packed {
		ev.readers.lost(e.key)
	}
	return e
}

// worthAt is what it is worth to keep k in memory, as the planner has it, if it is
// used next at a time. mu is held.
func (ev *eviction) worthAt(k *kept, next float64) float64 {
	item := ev.item(k)
	return ev.strategy.planner.Worth(&item, next)
}

// item is what a planner wants to know of k. If its bytes are in memory in
// another form too, that is all that is lost with it. mu is held.
func (ev *eviction) item(k *kept) policy.Item {
	i := policy.Item{Now: k.level(), Group: -1, Job: -1, Last: ev.time.seconds(k.last), Floor: ev.strategy.pins[k.key.Plan]}
	i.Bytes[policy.Packed], i.Wait[policy.Source] = k.real, k.took.Seconds()
	describe(&i, k.size, ev.strategy.packing[k.key.Plan], &ev.rates.from, ev.rates.writes, ev.nvme != nil)
	if !k.packed && ev.slabs.isPacked(k.key) {
		i.Wait[policy.Source], i.Floor = i.Wait[policy.Packed], policy.Source
	}
	return i
}

// seconds is a time on the planner's clock.
func (tl *timeline) seconds(t time.Time) float64 {
	if t.IsZero() {
		return -1
	}
	return t.Sub(tl.began).Seconds()
}

package cache

import (
	"math"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/policy"
)

// What a batch is worth follows from when it is opened next, what it would cost to
// have it again, and what the planner makes of both.

// A timeline is the planner's clock: seconds since the cache began.
type timeline struct{ began time.Time }

// seconds is a time on that clock; below zero: never.
func (tl *timeline) seconds(t time.Time) float64 {
	if t.IsZero() {
		return -1
	}
	return t.Sub(tl.began).Seconds()
}

// place is the position of b in the order: in the lane of the reader that comes to it
// first.
func (ev *eviction) place(b *batch) place {
	next, _, ok := ev.readers.soonest(b.key, time.Now())
	if !ok {
		return place{ev.readers.tenants.lane(b.plan), ev.worthAt(b, ev.guess(b))}
	}
	return place{next.reader.lane, ev.worthAt(b, ev.time.seconds(next.reader.course.at(next.step)))}
}

// worthAt is the planner's worth of keeping b in memory if its next use is at that
// time.
func (ev *eviction) worthAt(b *batch, next float64) float64 {
	item := ev.item(b)
	return ev.strategy.planner.Worth(&item, next)
}

// item describes b to the planner. If its bytes are in memory in another form too,
// evicting b loses no more than the conversion.
func (ev *eviction) item(b *batch) policy.Item {
	i := policy.Item{Now: b.level(), Group: -1, Job: -1, Last: ev.time.seconds(b.last), Floor: ev.strategy.pins[b.key.Plan]}
	i.Bytes[policy.Packed], i.Wait[policy.Source] = b.real, b.took.Seconds()
	describe(&i, b.size, ev.strategy.packing[b.key.Plan], &ev.rates.from, ev.rates.writes, ev.nvme != nil)
	if !b.packed && ev.slabs.isPacked(b.key) {
		i.Wait[policy.Source], i.Floor = i.Wait[policy.Packed], policy.Source
	}
	return i
}

// wanted is when e will be opened: before anything that was guessed, if an open
// waits for it.
func (ev *eviction) wanted(e *entry, now time.Time) float64 {
	if e.waiters > 0 {
		return 0
	}
	return ev.nextUse(&e.batch, now)
}

// nextUse is when b will be opened again, as far as that can be known: when a
// reader comes to it, in this epoch or the next one; or else, if it was used
// before, after as long as it took last time. Of a part that fills copy from nothing
// is guessed: one that the window of a shuffle has passed would be overdue for ever.
func (ev *eviction) nextUse(b *batch, now time.Time) float64 {
	if _, at, ok := ev.readers.soonest(b.key, now); ok {
		return ev.time.seconds(at)
	}
	return ev.guess(b)
}

func (ev *eviction) guess(b *batch) float64 {
	if b.gap > 0 && !b.plan.Shared() && !ev.readers.traces.done(b.key) {
		return ev.time.seconds(b.last) + b.gap.Seconds()
	}
	return math.Inf(1)
}

// needsCopy reports whether b would be packed or written when it leaves memory.
func (ev *eviction) needsCopy(b *batch) bool {
	if !b.inMemory() || !b.opened || ev.readOnce(b) || ev.slabs.isPacked(b.key) {
		return false
	}
	at, known := ev.strategy.targets.of(b.key)
	if _, pays := ev.strategy.packing[b.key.Plan]; at >= policy.Packed && pays && !b.dense {
		return true
	}
	return (!known || at >= policy.Disk) && ev.unwritten(b.key)
}

// misplaced reports whether an idle batch has a copy to be made or given up.
func (ev *eviction) misplaced(b *batch) bool {
	at, ok := ev.strategy.targets.of(b.key)
	if !ok || ev.readOnce(b) {
		return false
	}
	toDisk := at == policy.Disk && ev.unwritten(b.key)
	switch {
	case b.packed:
		_, there := ev.slabs.ready(b.key)
		return there && at == policy.RAM || !there && toDisk
	case !b.inMemory():
		return false
	}
	return toDisk || at == policy.Packed && !ev.slabs.isPacked(b.key) && !b.dense
}

// worthWriting reports whether a packed batch is worth a copy on a disk: it may be
// wanted again, it is in no other form, and what an open waits less for the disk than
// for the source is more than it takes to unpack and to write it, as measured.
func (ev *eviction) worthWriting(b *batch) bool {
	if at, known := ev.strategy.targets.of(b.key); ev.readOnce(b) || ev.slabs.known(b.key) || known && at == policy.Source {
		return false
	}
	i := ev.item(b)
	return i.Wait[policy.Source]-i.Wait[policy.Disk] > i.Move[policy.Disk]+i.Wait[policy.Packed]
}

// unwritten reports whether there is a disk that has no copy of a batch.
func (ev *eviction) unwritten(k Key) bool { return ev.nvme != nil && !ev.nvme.Has(disks.Key(k)) }

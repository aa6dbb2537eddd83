package cache

import (
	"math"
	"time"

	"rankfs/cache/pack"
	"rankfs/cache/policy"
	"rankfs/meta"
)

// The worth of a batch follows from when it is opened next, from the cost of making it
// again, and from what the policy makes of both.

// addIdle adds a batch that has become idle, at its place in the order.
func (ev *eviction) addIdle(b batch) { ev.slabs.idle.put(b, ev.place(&b, time.Now())) }

// place is the position of b in the order.
func (ev *eviction) place(b *batch, now time.Time) heapPlace {
	next, _, comes := ev.readers.soonest(b.key, now)
	return ev.placeFor(b, next, comes, now)
}

// placeFor is place if the reader is known that comes to b first.
func (ev *eviction) placeFor(b *batch, next use, comes bool, now time.Time) heapPlace {
	heap := ev.heapOf(b, next, comes)
	switch {
	case comes:
		return heapPlace{heap, ev.worthAt(b, ev.time.seconds(next.reader.course.at(next.step)))}
	case heap == spentHeap:
		return heapPlace{heap, ev.time.seconds(b.last)}
	}
	return heapPlace{heap, ev.worthAt(b, ev.guess(b, now))}
}

// heapOf is the heap of b if the reader is known that comes to it first: that reader's. A
// batch that was read and that no reader comes to is spent if no other epoch has it.
func (ev *eviction) heapOf(b *batch, next use, comes bool) uint8 {
	switch {
	case comes:
		return next.reader.heap
	case !b.packed && b.opened && ev.readOnce(b) && !b.series.Shared:
		return spentHeap
	}
	return ev.readers.tenants.heap(b.series)
}

// worthAt is the policy's worth of keeping b in memory if its next use is at that
// time.
func (ev *eviction) worthAt(b *batch, next float64) float64 {
	ev.asked = ev.item(b)
	return ev.strategy.policy.Worth(&ev.asked, next)
}

// stays reports whether the pin of b keeps it at the level that it is at.
func (ev *eviction) stays(b *batch) bool {
	i := ev.item(b)
	return i.Stays()
}

// item describes b to the policy. If its bytes are in memory in another form too,
// evicting b loses no more than the conversion.
func (ev *eviction) item(b *batch) policy.Item {
	i := policy.Item{Now: b.level(), Group: -1, Job: -1, Last: ev.time.seconds(b.last), Floor: ev.strategy.pins[b.key.Series]}
	i.Bytes[policy.Packed], i.Wait[policy.Source] = b.real, b.took.Seconds()
	describe(&i, b.size, ev.strategy.packing[b.key.Series], &ev.rates.from, ev.rates.writes, ev.nvme != nil)
	if !b.packed && ev.slabs.isPacked(b.key) {
		i.Wait[policy.Source], i.Floor = i.Wait[policy.Packed], policy.Source
	}
	return i
}

// describe says what an item of some bytes costs at each level, as far as that
// is not known of itself.
func describe(i *policy.Item, size int64, m pack.Measure, rates *[policy.Levels]cost, writes rate, disk bool) {
	seconds := func(l policy.Level) float64 { return rates[l].duration(float64(size)).Seconds() }
	mib := float64(size) / (1 << 20)
	i.Bytes[policy.RAM], i.Bytes[policy.Disk] = meta.WholePages(size), -1
	if disk {
		i.Bytes[policy.Disk] = size
	}
	switch {
	case i.Bytes[policy.Packed] > 0: // it is there
	case m.Ratio > 0:
		i.Bytes[policy.Packed] = meta.WholePages(int64(float64(size) * m.Ratio))
	default:
		i.Bytes[policy.Packed] = -1
	}
	if i.Wait[policy.Source] == 0 {
		i.Wait[policy.Source] = seconds(policy.Source)
	}
	i.Wait[policy.Packed], i.Move[policy.Packed] = m.Unpack.Seconds()*mib, m.Pack.Seconds()*mib
	i.Wait[policy.Disk], i.Move[policy.Disk] = seconds(policy.Disk), float64(size)/writing(writes)
}

// writing is the rate at which disks write, in bytes a second, as measured; no more than a
// page cache takes, or a choice would move things about as if that cost nothing.
func writing(measured rate) float64 {
	const maxWriting = 1 << 30
	if measured.perSecond == 0 {
		return maxWriting
	}
	return min(measured.perSecond, maxWriting)
}

// wanted is when e will be opened, or what is made of it: before anything that was
// guessed, if an open waits for it.
func (ev *eviction) wanted(e *entry, now time.Time) float64 {
	if e.awaited() {
		return 0
	}
	next := ev.nextUse(&e.batch, now)
	for _, f := range e.fills {
		next = min(next, ev.wanted(f, now))
	}
	return next
}

// nextUse is when b will be opened again, as far as that can be known: when a
// reader comes to it, in this epoch or the next one; or else, if it was used
// before, after as long as it took last time. When an input is used again is not guessed:
// one that the window of a shuffle has passed would be overdue for ever.
func (ev *eviction) nextUse(b *batch, now time.Time) float64 {
	if _, at, ok := ev.readers.soonest(b.key, now); ok {
		return ev.time.seconds(at)
	}
	return ev.guess(b, now)
}

// guess is when b will be used again if that takes as long as last time. If it takes
// longer, it is expected to be as late again as it is already.
func (ev *eviction) guess(b *batch, now time.Time) float64 {
	if b.gap <= 0 || b.series.Shared || ev.readers.traces.done(b.key) {
		return math.Inf(1)
	}
	at := b.last.Add(b.gap)
	if late := now.Sub(at); late > 0 {
		at = now.Add(late)
	}
	return ev.time.seconds(at)
}

// needsCopy reports whether b would be packed or written when it leaves memory.
func (ev *eviction) needsCopy(b *batch) bool {
	if !b.inMemory() || !b.opened && !ev.pinned(b) || ev.readOnce(b) || ev.slabs.isPacked(b.key) {
		return false
	}
	at, known := ev.strategy.targets.of(b.key)
	if _, pays := ev.strategy.packing[b.key.Series]; at >= policy.Packed && pays && !b.dense {
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
func (ev *eviction) unwritten(k Key) bool { return ev.nvme != nil && !ev.nvme.Has(k) }

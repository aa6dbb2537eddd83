package cache

import (
	"sync/atomic"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/fair"
	"rankfs/cache/policy"
	"rankfs/meta"
)

// eviction says which idle batch goes first when room is needed: a stale one, then the
// oldest of those that are spent (read, and never to be read again), then one of a job that
// has another's part of memory, then the one worth least. It takes the victim out of the cache; to copy and
// to give it up is the store's. Its victims are in victim.go, its order is in worth.go.
// The cache's lock guards it.
type eviction struct {
	time     timeline
	budget   *atomic.Int64 // bytes of memory
	nvme     *disks.Tier   // nil if there is none
	slabs    *slabs
	readers  *readers
	strategy *strategy
	rates    *rates
	asked    policy.Item // what the policy is asked the worth of: it would be allocated for each question
}

// readOnce reports whether b is of no use once it was read, as it is not pinned.
func (ev *eviction) readOnce(b *batch) bool {
	return b.series.Once && !ev.pinned(b)
}

// pinned reports whether b is not to leave the cache.
func (ev *eviction) pinned(b *batch) bool { return ev.strategy.pins[b.key.Series] != policy.Source }

// remove takes an idle batch out of the cache.
func (ev *eviction) remove(id uint32) *entry {
	e := &entry{batch: ev.slabs.idle.take(id), state: ready}
	if !e.packed {
		ev.readers.missed(e.key)
	}
	return e
}

// weigh says how tenants stand. One alone has no standing: there is no other to take
// anything from it; nor has any under a policy that knows no jobs. One that rests waits for
// nothing, and no part of memory is due to it.
func (ev *eviction) weigh(now time.Time) {
	ts, idle := &ev.readers.tenants, ev.slabs.idle
	for _, t := range ts.of {
		t.standing, t.read = fair.Standing{Due: -1}, false
	}
	all, count := 0, int64(0)
	for _, t := range ts.of {
		if t.standing.Due < 0 { // of several series
			t.standing, t.resting = fair.Standing{}, t.rests(now)
			if all++; !t.resting {
				count++
			}
		}
	}
	if all < 2 || !policy.Divides(ev.strategy.name) {
		return
	}
	for n, s := range idle.series {
		if s == nil {
			continue
		}
		if t := ts.reading(s); t != nil {
			t.standing.Held += idle.bytes[n]
		}
	}
	for _, ep := range ev.readers.epochs {
		t := ts.reading(ep.series)
		if t == nil || t.resting {
			continue
		}
		t.read = t.read || len(ep.readers) > 0
		for r := range ep.all() {
			if r.Run >= trusted {
				t.standing.Needs += int64(ev.readers.window(r)+2) * meta.WholePages(r.size)
			}
		}
	}
	for _, t := range ts.of {
		if t.resting {
			continue
		}
		s := &t.standing
		s.Due = ev.budget.Load() / count
		unforeseen := t.read && t.random > 0.5 // it would wait for whatever it lost
		s.Late = t.late > lateShare || unforeseen && s.Held <= s.Due
	}
}

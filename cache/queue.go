package cache

import (
	"slices"
	"sync"
	"time"

	"rankfs/meta/stall"
)

// queue chooses the next task of a worker: an entry that an open waits for, or a batch
// that a reader comes to. It holds only entries that opens wait for: batches missing
// ahead of readers are looked up when a worker is free.
//
// Workers' time is shared between jobs, each with two accounts, by fair queueing: the
// account that had least is served first, so a job that opens everything at random
// costs one that goes in order no more than its share. The cache's lock guards it.
type queue struct {
	readers *readers
	slabs   *slabs
	demand  []*entry      // waited for and not begun, in order of arrival
	others  usage         // by opens that are followed no more
	clock   time.Duration // the end of the account that was served last
	workers int
	resting int        // workers without a task
	unknown []keyless  // what cannot be chosen before it has a key
	wake    *sync.Cond // signals a task for a worker, or the end of its wait
}

func (q *queue) start(u *usage) time.Duration { return max(q.clock, u.end) }

// charge begins to use workers' time on an account.
func (q *queue) charge(u *usage) {
	q.clock = q.start(u)
	u.end = q.clock
}

// usageOf is the account of an open, which was to be expected or not.
func (q *queue) usageOf(s Names, expected bool) *usage {
	ep := q.readers.epochs[s.ID()]
	switch {
	case ep == nil:
		return &q.others
	case expected:
		return &ep.usages[0]
	}
	return &ep.usages[1]
}

// push has an entry filled that an open waits for.
func (q *queue) push(e *entry) {
	q.demand = append(q.demand, e)
	q.wake.Broadcast()
}

// requeue has an entry filled that opens have come to wait for.
func (q *queue) requeue(e *entry) {
	q.demand = append(q.demand, e)
	q.wake.Signal()
}

// choose picks an entry for a worker, or returns nil. It is one that an open waits
// for, or that of a batch ahead of a reader, if such are to be made ready.
func (q *queue) choose(ahead bool) (e *entry, demanded bool) {
	best, ok := q.task(ahead)
	if !ok {
		return nil, false
	}
	q.charge(best.usage)
	if !best.ahead {
		e = q.demand[best.demand]
		q.demand = slices.Delete(q.demand, best.demand, best.demand+1)
		return e, true
	}
	e, _ = q.slabs.entry(best.series, best.key, best.reader.rank, best.step) // which is missing
	q.slabs.begin(e, best.usage, stall.Plan)
	e.prefetchFor, e.prefetchStep = best.reader, best.reader.Scan
	return e, false
}

// maxLook bounds how many waiting opens are looked through for the one whose account
// is served next.
const maxLook = 256

// A task is what a worker may do next: fill what an open waits for, or what a
// reader comes to.
type task struct {
	usage  *usage
	demand int     // which of the waiting opens, or
	ahead  bool    // the batch of a series that is
	due    float64 // in so many seconds
	reader *reader
	coming
}

// A keyless is a batch that a reader comes to whose key has to be found first.
type keyless struct {
	epoch  *epoch
	reader *reader
	scan   uint64 // where the reader comes to it
	coming
}

// task is the most urgent task.
func (q *queue) task(ahead bool) (best task, ok bool) {
	consider := func(t task) {
		if !ok || q.before(t, best) {
			best, ok = t, true
		}
	}
	for i, e := range q.demand[:min(maxLook, len(q.demand))] {
		consider(task{usage: e.usage, demand: i})
	}
	now := time.Now()
	q.readers.dropSilent(now)
	if !ahead {
		return best, ok
	}
	for _, ep := range q.readers.epochs {
		for r := range ep.all() {
			r = q.readers.traces.guide(ep.series, r)
			b, is := q.readers.missing(ep, r)
			switch {
			case is && b.known:
				consider(task{usage: ep.usage(r), ahead: true, due: r.Due(r.Scan, now.Sub(r.seen).Seconds()), reader: r, coming: b})
			case is && !ep.finding:
				ep.finding = true
				q.unknown = append(q.unknown, keyless{ep, r, r.Scan, b})
			}
		}
	}
	return best, ok
}

// before reports whether a is done first: by account, then what an open waits for, in
// order, then what is needed soonest.
func (q *queue) before(a, b task) bool {
	if x, y := q.start(a.usage), q.start(b.usage); x != y {
		return x < y
	}
	if a.ahead != b.ahead {
		return b.ahead
	}
	return a.ahead && a.due < b.due
}

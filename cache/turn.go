package cache

import (
	"slices"
	"sync"
	"time"

	"rankfs/cache/stall"
)

// A turn is an account of workers' time. Who had least is served first, so a job
// that opens everything at random costs one that goes in order no more than its
// share. What was not used in the past is not saved up: a turn starts no earlier
// than that of who was served last.
type turn struct{ end time.Duration }

func (q *queue) start(t *turn) time.Duration { return max(q.clock, t.end) }

// take begins a turn. mu is held.
func (q *queue) take(t *turn) {
	q.clock = q.start(t)
	t.end = q.clock
}

// turnOf is the account of an open, which was to be expected or not. mu is held.
func (q *queue) turnOf(p Plan, expected bool) *turn {
	j := q.readers.jobs[p.ID()]
	switch {
	case j == nil:
		return &q.others
	case expected:
		return &j.turns[0]
	}
	return &j.turns[1]
}

// queue says what workers do next.
type queue struct {
	readers *readers
	slabs   *slabs
	demand  []*entry      // waited for and not begun, in order of arrival
	others  turn          // for opens that are followed no more
	clock   time.Duration // of turns
	workers int
	resting int        // of those, that have nothing to do
	wake    *sync.Cond // something for a worker to do, or to give up waiting for
}

// push has an entry filled that an open waits for.
func (q *queue) push(e *entry) {
	q.demand = append(q.demand, e)
	q.wake.Broadcast()
}

// again has an entry filled once more.
func (q *queue) again(e *entry) {
	q.demand = append(q.demand, e)
	q.wake.Signal()
}

// maxLook bounds how many waiting opens are looked through for the one whose
// turn it is.
const maxLook = 256

// A task is what a worker may do next: fill what an open waits for, or what a
// reader will want.
type task struct {
	turn   *turn
	demand int           // which of the waiting opens, or
	ahead  bool          // the batch of a plan that is
	due    time.Duration // in so long
	reader *reader
	plan   Plan
	step   uint64
}

// before reports whether a is done first: that whose turn it is, then what an
// open waits for, in order, then what is needed soonest. mu is held.
func (q *queue) before(a, b task) bool {
	if x, y := q.start(a.turn), q.start(b.turn); x != y {
		return x < y
	}
	if a.ahead != b.ahead {
		return b.ahead
	}
	return a.ahead && a.due < b.due
}

// choose picks what a worker does next, if anything. mu is held.
func (q *queue) choose(ahead bool) (e *entry, what errand) {
	best, ok := q.task(ahead)
	if !ok {
		return nil, nothing
	}
	q.take(best.turn)
	if !best.ahead {
		e = q.demand[best.demand]
		q.demand = slices.Delete(q.demand, best.demand, best.demand+1)
		return e, demanded
	}
	e, _ = q.slabs.want(best.plan, best.reader.rank, best.step) // which is missing
	q.slabs.begin(e, best.turn, stall.Plan)
	e.wisher, e.ahead = best.reader, best.reader.scan
	return e, wished
}

func (q *queue) task(ahead bool) (best task, ok bool) {
	consider := func(t task) {
		if !ok || q.before(t, best) {
			best, ok = t, true
		}
	}
	for i, e := range q.demand[:min(maxLook, len(q.demand))] {
		consider(task{turn: e.turn, demand: i})
	}
	now := time.Now()
	q.readers.forget(now)
	if !ahead {
		return best, ok
	}
	for _, j := range q.readers.jobs {
		for _, r := range j.readers {
			r = q.readers.traces.guide(j.plan, r)
			if p, step, is := q.readers.missing(j, r); is {
				consider(task{turn: j.turn(r), ahead: true, due: r.due(r.scan, now), reader: r, plan: p, step: step})
			}
		}
	}
	return best, ok
}

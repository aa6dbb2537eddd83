package cache

import (
	"slices"
	"time"

	"rankfs/cache/stall"
)

// A turn is an account of workers' time. Who had least is served first, so a job
// that opens everything at random costs one that goes in order no more than its
// share. What was not used in the past is not saved up: a turn starts no earlier
// than that of who was served last.
type turn struct{ end time.Duration }

func (c *Cache) start(t *turn) time.Duration { return max(c.mu.clock, t.end) }

// take begins a turn. mu is held.
func (c *Cache) take(t *turn) {
	c.mu.clock = c.start(t)
	t.end = c.mu.clock
}

// turnOf is the account of an open, which was to be expected or not. mu is held.
func (c *Cache) turnOf(p Plan, expected bool) *turn {
	j := c.mu.jobs[p.ID()]
	switch {
	case j == nil:
		return &c.mu.others
	case expected:
		return &j.turns[0]
	}
	return &j.turns[1]
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
func (c *Cache) before(a, b task) bool {
	if x, y := c.start(a.turn), c.start(b.turn); x != y {
		return x < y
	}
	if a.ahead != b.ahead {
		return b.ahead
	}
	return a.ahead && a.due < b.due
}

// choose picks what a worker does next, if anything. mu is held.
func (c *Cache) choose() (e *entry, what errand) {
	best, ok := c.task()
	if !ok {
		return nil, nothing
	}
	c.take(best.turn)
	if !best.ahead {
		e = c.mu.demand[best.demand]
		c.mu.demand = slices.Delete(c.mu.demand, best.demand, best.demand+1)
		return e, demanded
	}
	c.mu.count.prefetched++
	e, _ = c.want(best.plan, best.reader.rank, best.step) // which is missing
	c.begin(e, best.turn, stall.Plan)
	e.wisher, e.ahead = best.reader, best.reader.scan
	return e, wished
}

func (c *Cache) task() (best task, ok bool) {
	consider := func(t task) {
		if !ok || c.before(t, best) {
			best, ok = t, true
		}
	}
	for i, e := range c.mu.demand[:min(maxLook, len(c.mu.demand))] {
		consider(task{turn: e.turn, demand: i})
	}
	now := time.Now()
	c.forget(now)
	if c.mu.strained {
		return best, ok
	}
	for _, j := range c.mu.jobs {
		for _, r := range j.readers {
			r = c.mu.traces.guide(j.plan, r)
			if p, step, is := c.missing(j, r); is {
				consider(task{turn: j.turn(r), ahead: true, due: r.due(r.scan, now), reader: r, plan: p, step: step})
			}
		}
	}
	return best, ok
}

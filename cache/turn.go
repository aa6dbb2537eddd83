package cache

import (
	"slices"
	"time"
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

// turnOf is the account of those who want e, nil if they are not followed. mu is held.
func (c *Cache) turnOf(e *entry) *turn {
	j := c.mu.jobs[e.plan.ID()]
	switch {
	case j == nil:
		return &c.mu.others
	case e.astray:
		return &j.turns[1]
	}
	return &j.turns[0]
}

// maxLook bounds how many waiting opens are looked through for the one whose
// turn it is.
const maxLook = 256

// demanded is the waiting open whose turn it is, and that turn; nil if none
// waits. mu is held.
func (c *Cache) demanded() (which int, best *turn) {
	for i, e := range c.mu.demand[:min(maxLook, len(c.mu.demand))] {
		if t := c.turnOf(e); best == nil || c.start(t) < c.start(best) {
			which, best = i, t
		}
	}
	return which, best
}

// choose picks what a worker does next: what an open waits for, what a reader
// needs soonest, or nothing. mu is held.
func (c *Cache) choose() (e *entry, demanded bool) {
	wish, ok := c.ahead()
	if i, turn := c.demanded(); turn != nil && (!ok || c.start(turn) <= c.start(&wish.job.turns[0])) {
		e = c.mu.demand[i]
		c.mu.demand = slices.Delete(c.mu.demand, i, i+1)
		c.take(turn)
		return e, true
	}
	if !ok {
		return nil, false
	}
	c.take(&wish.job.turns[0])
	c.mu.count.prefetched++
	return c.want(wish.plan, wish.rank, wish.step), false
}

// A wish is a batch that a reader will want.
type wish struct {
	job        *job
	plan       Plan
	rank, step uint64
}

// ahead finds the batch that is needed soonest and not there or on its way; of
// those that are late already, that of the job whose turn it is. mu is held.
func (c *Cache) ahead() (best wish, ok bool) {
	now, due := time.Now(), time.Duration(0)
	c.forget(now)
	for _, j := range c.mu.jobs {
		for _, r := range j.readers {
			p, step, is := c.missing(j, r)
			if !is {
				continue
			}
			in := r.due(r.scan, now)
			sooner := in < due
			if in <= 0 && due <= 0 && ok && j != best.job {
				sooner = c.start(&j.turns[0]) < c.start(&best.job.turns[0])
			}
			if !ok || sooner {
				best, due, ok = wish{j, p, r.rank, step}, in, true
			}
		}
	}
	return best, ok
}

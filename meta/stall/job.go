package stall

import "time"

// A job is the account of one. The table's lock guards it.
type job struct {
	totals  Totals // of what has ended
	waiting int    // opens under way that wait
	waits   *waiter
	ranks   map[uint64]*rank
	spans   histogram // of the waits of opens
	last    time.Time
	samples ring
}

// A rank is the account of one.
type rank struct {
	totals  Totals
	waiting int       // its opens that wait
	since   time.Time // when it began, or began again after a gap
	last    time.Time // up to here its time is counted
}

// A waiter is an open that waits.
type waiter struct {
	wait       Wait
	rank       *rank // nil: it is not followed
	prev, next *waiter
}

func newJob(now time.Time) *job {
	j := &job{ranks: make(map[uint64]*rank), last: now}
	j.samples.add(now, Totals{})
	return j
}

// reach counts a rank's time up to now, where it has opened something.
func (j *job) reach(r *rank, now time.Time) {
	if r == nil {
		return
	}
	passed := now.Sub(r.last)
	switch {
	case r.last.IsZero() || r.waiting == 0 && passed > Gap:
		r.since = now
	case passed < 0:
		return // two opens of a rank, which came in the other order
	default:
		j.spend(r, passed)
	}
	r.last = now
}

// spend adds to the time of a rank.
func (j *job) spend(r *rank, passed time.Duration) {
	r.totals.Time += passed
	j.totals.Time += passed
	if r.waiting > 0 {
		r.totals.Stalled += passed
		j.totals.Stalled += passed
	}
}

// now is the totals, with the waits under way.
func (j *job) now(now time.Time) Totals {
	t := j.totals
	for w := j.waits; w != nil; w = w.next {
		t.Wait = t.Wait.Add(w.wait.ByCause())
	}
	if j.waiting == 0 {
		return t
	}
	for _, r := range j.ranks {
		d := r.pending(now)
		t.Time, t.Stalled = t.Time+d, t.Stalled+d
	}
	return t
}

// pending is the time of a wait that is not counted yet.
func (r *rank) pending(now time.Time) time.Duration {
	if r.waiting == 0 {
		return 0
	}
	return max(0, now.Sub(r.last))
}

// reads reports whether the rank is at it: one that is silent for less than Gap still is.
func (r *rank) reads(now time.Time) bool { return r.waiting > 0 || now.Sub(r.last) <= Gap }

// active is for how long of the time between two moments, no further apart than
// Gap, the rank was at it.
func (r *rank) active(from, to time.Time) time.Duration {
	begin, end := r.since, r.last
	if r.reads(to) {
		end = to
	}
	if begin.Before(from) {
		begin = from
	}
	return max(0, end.Sub(begin))
}

// insert and remove keep the list of those that wait.
func (j *job) insert(w *waiter) {
	if w.next = j.waits; w.next != nil {
		w.next.prev = w
	}
	j.waits = w
}

func (j *job) remove(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		j.waits = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
}

package cache

import (
	"cmp"
	"iter"
	"slices"
	"sync"
	"time"

	"rankfs/meta/stall"
)

// queue chooses the next task of a worker: an entry that an open waits for, or a batch
// that a reader comes to. It holds only entries that opens wait for: batches missing
// ahead of readers are looked up when a worker is free.
//
// Workers' time is shared between jobs, and in each between its two accounts, by fair
// queueing: the account that had least is served first, so a job that opens everything at
// random, or that has many ranks, costs one that goes in order no more than its share.
//
// The share of a job that has nothing to do is lent to others. It has it back at once: for
// a job that has less than its share of workers there is one more, until those end what
// they have begun that others have beyond theirs. The cache's lock guards it.
type queue struct {
	readers  *readers
	slabs    *slabs
	rates    *rates
	accounts *accounts
	time     timeline
	demand   map[*usage][]*entry // what opens wait for on an account that is not begun, in order of arrival
	waiting  []*usage            // the accounts of these
	length   int                 // of these, together
	workers  int
	resting  int        // workers without a task
	held     bool       // there was a task when all workers were busy
	unknown  []keyless  // what cannot be chosen before it has a key
	wake     *sync.Cond // signals a task for a worker, or the end of its wait
}

// now is the time of accounts.
func (q *queue) now() time.Duration { return time.Since(q.time.began) }

// push has an entry filled that an open waits for.
func (q *queue) push(e *entry) {
	q.add(e)
	q.wake.Broadcast()
}

// requeue has an entry filled that opens have come to wait for.
func (q *queue) requeue(e *entry) {
	q.add(e)
	q.wake.Signal()
}

func (q *queue) add(e *entry) {
	if len(q.demand[e.usage]) == 0 {
		q.waiting = append(q.waiting, e.usage)
	}
	q.demand[e.usage] = append(q.demand[e.usage], e)
	q.length++
}

// remove takes the i-th entry that waits on an account.
func (q *queue) remove(u *usage, i int) (e *entry) {
	e = q.demand[u][i]
	q.length--
	if q.demand[u] = slices.Delete(q.demand[u], i, i+1); len(q.demand[u]) == 0 {
		delete(q.demand, u)
		n := slices.Index(q.waiting, u)
		q.waiting = slices.Delete(q.waiting, n, n+1)
	}
	return e
}

// joins has an entry for which one more open waits be on the account of that, if it is
// served sooner: it is not to wait for the turn of another job.
func (q *queue) joins(e *entry, u *usage) {
	if u.of == e.usage.of || e.state != filling {
		return
	}
	i := slices.Index(q.demand[e.usage], e)
	if now := q.now(); i >= 0 && q.sooner(u, e.usage, now) < 0 {
		q.remove(e.usage, i)
		e.usage = u
		q.add(e)
		q.wake.Signal()
	}
}

// demanded are the entries that opens wait for and that are not begun.
func (q *queue) demanded() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, u := range q.waiting {
			for _, e := range q.demand[u] {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// demands reports whether opens wait for an entry that is not begun.
func (q *queue) demands(e *entry) bool {
	for o := range q.demanded() {
		if o == e {
			return true
		}
	}
	return false
}

// choose picks an entry for a worker, or returns nil. It is one that an open waits
// for, or that of a batch ahead of a reader, if such are to be made ready. What it takes
// is charged until that is ended.
func (q *queue) choose(ahead bool) (e *entry, demanded bool, on charge) {
	now := q.now()
	best, ok := q.task(ahead, now)
	if !ok {
		return nil, false, charge{}
	}
	if best.ahead {
		e, _ = q.slabs.entry(best.series, best.key, best.reader.rank, best.step) // which is missing
		q.slabs.begin(e, best.usage, stall.Overhead)
		e.prefetchFor, e.prefetchStep = best.reader, best.reader.Scan
	} else {
		e = q.remove(best.usage, 0)
	}
	best.usage.begin(now)
	return e, !best.ahead, charge{best.usage, now}
}

// end ends a charge.
func (q *queue) end(c charge) {
	if c.usage != nil {
		c.usage.done(c.began, q.now())
	}
}

// A task is the next work of a worker: to fill what an open waits for, or what a
// reader comes to.
type task struct {
	usage  *usage
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

// task is the most urgent task of those that a worker may do.
func (q *queue) task(ahead bool, now time.Duration) (best task, ok bool) {
	full := q.full()
	q.held = q.held && full
	consider := func(t task) {
		switch {
		case full && !q.lacks(t.usage.of):
			q.held = true
		case !ok || q.before(t, best, now):
			best, ok = t, true
		}
	}
	for _, u := range q.waiting {
		consider(task{usage: u})
	}
	at := time.Now()
	q.readers.dropSilent(at)
	if !ahead || full && len(q.readers.tenants.of) < 2 { // of one job, which does not lack
		return best, ok
	}
	for _, ep := range q.readers.epochs {
		for r := range ep.all() {
			u := r.usage
			r = q.readers.traces.guide(ep.series, r)
			b, is := q.readers.missing(ep, r)
			switch {
			case is && b.known:
				consider(task{usage: u.part(r.Run >= trusted), ahead: true, due: r.Due(r.Scan, at.Sub(r.seen).Seconds()), reader: r, coming: b})
			case is && !ep.finding:
				ep.finding = true
				q.unknown = append(q.unknown, keyless{ep, r, r.Scan, b})
			}
		}
	}
	return best, ok
}

// full reports whether as many fills are under way as are worth doing at a time.
func (q *queue) full() bool { return q.accounts.all.busy >= q.rates.fills.AtOnce() }

// most is the number that may be under way: what was lent ends beside what is had back for it.
func (q *queue) most() int { return 2 * q.rates.fills.AtOnce() }

// lacks reports whether a job has less than its share of the workers, by its weight, of those
// jobs for which there is something to do, and is not to wait until others end.
func (q *queue) lacks(u *usage) bool {
	jobs, weight := q.accounts.all.active, q.accounts.all.weight
	if u.busy == 0 {
		jobs, weight = jobs+1, weight+1/u.rate
	}
	part := 1 / u.rate / weight
	share := max(1, int(part*float64(q.rates.fills.AtOnce())+1e-9))
	lesser := part*float64(jobs) < 0.99 // it weighs less than others, and has its turn when that comes
	return !lesser && q.accounts.all.busy < q.most() && u.busy < share
}

// before reports whether a is done first: by the accounts, then what an open waits for,
// then what is needed soonest.
func (q *queue) before(a, b task, now time.Duration) bool {
	if c := q.sooner(a.usage, b.usage, now); c != 0 {
		return c < 0
	}
	if a.ahead != b.ahead {
		return b.ahead
	}
	return a.ahead && a.due < b.due
}

// sooner compares accounts by which is served first: that of the job that had less of
// workers' time, or of one job the part that had less. What began just now has had none:
// then it is that for which fewer are at work.
func (q *queue) sooner(a, b *usage, now time.Duration) int {
	if a.of != b.of {
		a, b = a.of, b.of
	}
	return cmp.Or(cmp.Compare(a.start(now), b.start(now)), cmp.Compare(a.busy, b.busy))
}

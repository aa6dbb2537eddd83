package cache

import (
	"time"

	"rankfs/cache/ahead"
	"rankfs/cache/policy"
)

// What readers come to, and what of it is missing.

// missing is the first step in a reader's window that is neither there nor on its way.
func (rs *readers) missing(j *job, r *reader) (p Plan, step uint64, ok bool) {
	last := r.pos + rs.window(r)
	if r.bar {
		last = min(last, r.barred)
	}
	if r.route != nil {
		return rs.missingOn(r.route, last)
	}
	for ; r.scan < last; r.scan++ {
		if p, step, ok = j.at(r.scan); !ok {
			return nil, 0, false
		}
		if !rs.slabs.known(p.Key(r.rank, step)) && p.Ahead(r.rank, step) {
			return p, step, true
		}
	}
	return nil, 0, false
}

// missingOn is missing for a reader that is foretold.
func (rs *readers) missingOn(r *route, last uint64) (p Plan, step uint64, ok bool) {
	for ; r.scan < last; r.scan++ {
		if step, is := r.at(r.scan); is && !rs.slabs.known(r.plan.Key(r.rank, step)) && r.plan.Ahead(r.rank, step) {
			return r.plan, step, true
		}
	}
	return nil, 0, false
}

// window is how many steps ahead of a reader are worth having. It grows with trust:
// one open may be a person who looks. All readers share the memory evenly.
func (rs *readers) window(r *reader) uint64 {
	size := max(pages(r.size), 1)
	share := rs.budget.Load() / int64(max(1, rs.count)) / size
	fit := max(1, share-2) // beside the one being read and the one just read
	want := int64(r.run)
	if r.pace > 0 && r.run > trusted {
		latency := rs.rates.from[policy.Source].duration(float64(size))
		want = ahead.Steps(latency.Seconds(), r.pace.Seconds(), rs.rates.fills.AtOnce())
	}
	return uint64(max(1, min(want, fit, int64(rs.config.MaxAhead))))
}

// backOff notes that a fill ahead of its reader failed: there is no use in trying
// again before the rank has moved.
func (rs *readers) backOff(e *entry) {
	r := e.prefetchFor
	if r == nil || e.prefetchStep < r.pos {
		return
	}
	r.barred, r.bar = e.prefetchStep, true
	r.scan = min(r.scan, e.prefetchStep)
}

// missed notes that a batch is no longer there that readers may have ahead of them.
func (rs *readers) missed(k Key) {
	for _, j := range rs.jobs {
		if rank, step, ok := j.plan.Find(k); ok && j.readers[rank] != nil && step >= j.readers[rank].pos {
			j.readers[rank].scan = min(j.readers[rank].scan, step)
		}
	}
	for _, r := range rs.traces.routes {
		if at, known := r.comesTo(k); known && at >= r.pos {
			r.scan = min(r.scan, at)
		}
	}
}

// A use is that a reader comes to a batch, at which of its steps: in this epoch, or
// in the one after it.
type use struct {
	reader *reader
	step   uint64
}

// comesTo reports whether any reader comes to the batch of k.
func (rs *readers) comesTo(k Key) bool {
	_, _, ok := rs.soonest(k, time.Now())
	return ok
}

// soonest is the first use of the batch of k, and when that is. What was learnt of a
// reader's ways is believed before what its last opens look like.
func (rs *readers) soonest(k Key, now time.Time) (first use, at time.Time, ok bool) {
	first, at, ok = rs.traces.soonest(k, now)
	for _, j := range rs.jobs {
		if u, is := j.use(k); is && !rs.traces.predicts(j.plan, u.reader.rank) {
			if t := u.reader.comes(u.step, now); !ok || t.Before(at) {
				first, at, ok = u, t, true
			}
		}
	}
	return first, at, ok
}

// use is when a reader of j comes to the batch of k.
func (j *job) use(k Key) (u use, ok bool) {
	if rank, step, is := j.plan.Find(k); is {
		if r := j.readers[rank]; r != nil && r.run >= trusted && step >= r.pos {
			return use{r, step}, true
		}
	}
	if j.next == nil {
		return u, false
	}
	if rank, step, is := j.next.Find(k); is {
		if r := j.readers[rank]; r != nil && r.run >= trusted {
			return use{r, j.plan.Steps() + step}, true
		}
	}
	return u, false
}

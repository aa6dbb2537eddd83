package cache

import (
	"time"

	"rankfs/cache/policy"
	"rankfs/meta"
)

// The batches that readers come to, and which of them are missing.

// A coming is a batch that a reader comes to.
type coming struct {
	series *Series
	step   uint64
	key    Key
	known  bool // what its key is
}

func comingTo(s *Series, rank, step uint64) coming {
	k, known := s.Known(rank, step)
	return coming{s, step, k, known}
}

// missing is the first step in a reader's window that is neither there nor on its way, as
// far as is known.
func (rs *readers) missing(ep *epoch, r *reader) (b coming, ok bool) {
	if r.route != nil {
		return rs.missingOn(r.route)
	}
	_, ok = r.Missing(rs.window(r), ep.end(), func(at uint64) bool {
		s, step := ep.at(at)
		b = comingTo(s, r.rank, step)
		return rs.hasOrLeaves(b)
	})
	return b, ok
}

// missingOn is missing for a reader that is foretold.
func (rs *readers) missingOn(r *route) (b coming, ok bool) {
	_, ok = r.Missing(rs.window(&r.reader), never, func(open uint64) bool {
		step, due := r.at(open)
		if !due {
			return true
		}
		b = comingTo(r.series, r.rank, step)
		return rs.hasOrLeaves(b)
	})
	return b, ok
}

// hasOrLeaves reports whether a batch is there or on its way, or is not to be made ready.
func (rs *readers) hasOrLeaves(b coming) bool {
	return b.known && (rs.slabs.known(b.key) || !b.series.Ahead || b.series.Own != nil && !b.series.Own(b.step))
}

// window is the number of steps ahead of a reader that are worth having. All readers share the
// memory evenly.
func (rs *readers) window(r *reader) uint64 {
	size := max(meta.WholePages(r.size), 1)
	latency := rs.rates.from[policy.Source].duration(float64(size))
	share := rs.budget.Load() / int64(max(1, rs.count))
	return r.Window(size, share, latency.Seconds(), rs.rates.fills.AtOnce(), rs.config.MaxAhead)
}

// backOff notes that a fill ahead of its reader failed: there is no use in trying
// again before the rank has moved.
func (rs *readers) backOff(e *entry) {
	if e.prefetchFor != nil {
		e.prefetchFor.BackOff(e.prefetchStep)
	}
}

// missed notes that a batch is no longer there that readers may have ahead of them.
func (rs *readers) missed(k Key) {
	for _, ep := range rs.epochs {
		if rank, step, ok := ep.series.Find(k); ok {
			for _, r := range ep.readers[rank] {
				r.Gone(step)
			}
		}
	}
	for _, r := range rs.traces.routes {
		if at, known := r.comesTo(k); known {
			r.Gone(at)
		}
	}
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
	for _, ep := range rs.epochs {
		u, t, is := ep.use(k, now)
		if is && !rs.traces.predicts(ep.series, u.reader.rank) && (!ok || t.Before(at)) {
			first, at, ok = u, t, true
		}
	}
	return first, at, ok
}

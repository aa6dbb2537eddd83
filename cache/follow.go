package cache

import (
	"slices"
	"time"

	"rankfs/cache/trace"
)

// A move is the effect of an open on its reader.
type move struct {
	expected bool   // the reader goes in order
	misses   bool   // a batch that it comes to is to be made ready
	asks     *epoch // the epoch whose next one is to be asked for; nil if none is
}

// follow notes that a rank opens a batch, on the account of a job: that has what the rank
// comes to.
func (rs *readers) follow(e *entry, s *Series, rank, step uint64, on *usage, now time.Time) (m move) {
	rs.trace(s, rank, step, now)
	ep, r := rs.reader(s, rank, step, now)
	if r == nil {
		return m
	}
	r.usage = on
	moved, expected := r.opens(step, rs.near(), rs.tenants.confidence(s), now)
	if !moved {
		return move{expected: expected}
	}
	ep.series = s
	if e.state == ready {
		r.size = e.size
	}
	if r.Run == trusted {
		r.set(now)
		r.heap = rs.heapFor(ep)
	}
	if m.expected = r.Run >= trusted; m.expected && !ep.asked {
		m.asks = ep
	}
	if r.Pos == s.Steps {
		rs.tenants.succeed(ep.series, ep.next)
		ep, r = rs.nextEpoch(ep, r)
	}
	m.misses = r != nil && rs.misses(ep, r)
	return m
}

// misses reports whether there is anything to make ready for r: to wake a worker for
// nothing would cost the rank 10 us.
func (rs *readers) misses(ep *epoch, r *reader) bool {
	b, ok := rs.missing(ep, rs.traces.guide(ep.series, r))
	return ok && (b.known || !ep.finding)
}

// nextEpoch takes a reader that is through with its epoch to the next one. It is
// not forgotten that it reads in order, nor how fast.
func (rs *readers) nextEpoch(ep *epoch, r *reader) (*epoch, *reader) {
	rs.remove(ep, r)
	only := ep.series.Steps == 1 && ep.series.Once // nothing is left to open, in whatever order
	if ep.next == nil && (only || r.Run >= trusted) {
		rs.tenants.end(ep)
	}
	if ep.next == nil || r.Run < trusted {
		return nil, nil
	}
	next := *r
	next.Rewind()
	next.opened = 0
	next.course.step -= int64(ep.series.Steps)
	after := rs.add(ep.next, &next)
	for _, other := range slices.Clone(after.readers[r.rank]) {
		if other.Run < trusted { // what it has opened there already
			rs.remove(after, other)
		}
	}
	return after, &next
}

// trace notes an open. What batches are made of is not opened by readers.
func (rs *readers) trace(s *Series, rank, step uint64, now time.Time) {
	if s.Shared {
		return
	}
	t, k := &rs.traces, tracedKey{s.ID, rank}
	r := t.of[k]
	if r == nil {
		t.makeRoom()
		r = &traced{trace: trace.Trace{Rank: rank, Steps: s.Steps}}
		t.of[k] = r
	}
	r.seen = now
	r.trace.Add(step)
	if r.route == nil && t.learnt != nil {
		rs.predict(r, s, now)
	}
	if r.route != nil {
		r.route.opens(step, now)
	}
}

// predict has a reader be foretold, if anything was learnt of its dataset. Batches
// that are read once need not be.
func (rs *readers) predict(r *traced, s *Series, now time.Time) {
	t := &rs.traces
	g := t.learnt[s.Dataset]
	if g == nil || s.Once || s.Steps > uint64(maxRouted-t.routed) {
		return
	}
	r.route = newRoute(s, r.trace.Rank, g, now)
	r.route.heap = rs.heapFor(nil)
	r.route.set(now)
	t.routes = append(t.routes, r.route)
	t.routed += int(s.Steps)
}

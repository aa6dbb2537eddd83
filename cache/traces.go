package cache

import (
	"time"

	"rankfs/cache/trace"
)

// Traces are the opens of the latest readers, one trace each, and the graphs learnt
// from them. The cache's lock guards them.
type traces struct {
	of     map[tracedKey]*traced
	learnt map[string]*trace.Graph // by the dataset of series
	routes []*route                // of readers of these
	routed int                     // steps that they have
}

// A tracedKey is one rank of a series.
type tracedKey struct {
	series [16]byte
	rank   uint64
}

// A traced is one reader.
type traced struct {
	trace trace.Trace
	seen  time.Time
	route *route // nil if it is not foretold
}

// maxTraced bounds the readers whose traces are kept, which takes up to 12 MiB;
// the one that was silent longest goes first.
const maxTraced = 128

func (t *traces) makeRoom() {
	if len(t.of) < maxTraced {
		return
	}
	var oldest tracedKey
	var seen time.Time
	for k, r := range t.of {
		if seen.IsZero() || r.seen.Before(seen) {
			oldest, seen = k, r.seen
		}
	}
	t.forgetRoute(t.of[oldest])
	delete(t.of, oldest)
}

// forgetRoute has a reader be foretold no more.
func (t *traces) forgetRoute(r *traced) {
	if r.route == nil {
		return
	}
	for i, other := range t.routes {
		if other == r.route {
			t.routes = append(t.routes[:i], t.routes[i+1:]...)
			t.routed -= len(other.due)
			break
		}
	}
	r.route = nil
}

// dropSilent forgets the routes of readers that have been silent for long.
func (t *traces) dropSilent(now time.Time, idle time.Duration) {
	if len(t.routes) == 0 {
		return
	}
	for _, r := range t.of {
		if now.Sub(r.seen) > idle {
			t.forgetRoute(r)
		}
	}
}

// soonest is the first use of the batch of k by a reader that is foretold.
func (t *traces) soonest(k Key, now time.Time) (first use, at time.Time, ok bool) {
	for _, r := range t.routes {
		if step, known := r.comesTo(k); known && step != never {
			if t := r.comes(step, now); !ok || t.Before(at) {
				first, at, ok = use{&r.reader, step}, t, true
			}
		}
	}
	return first, at, ok
}

// done reports whether a reader that is foretold will not open the batch of k again.
func (t *traces) done(k Key) bool {
	for _, r := range t.routes {
		if step, known := r.comesTo(k); known && step == never {
			return true
		}
	}
	return false
}

// predicts reports whether a reader's opens are foretold, and that is believed.
func (t *traces) predicts(s *Series, rank uint64) bool { return t.route(s, rank) != nil }

func (t *traces) route(s *Series, rank uint64) *route {
	if len(t.routes) == 0 {
		return nil
	}
	if r := t.of[tracedKey{s.ID, rank}]; r != nil && r.route != nil && r.route.trust > 0 {
		return r.route
	}
	return nil
}

// guide is the reader that says what r opens next: r itself, as long as it goes in
// order and nothing better is known.
func (t *traces) guide(s *Series, r *reader) *reader {
	g := t.route(s, r.rank)
	if g == nil {
		return r
	}
	if _, known := g.at(g.Pos); !known && r.Run >= trusted {
		return r
	}
	g.size = r.size
	return &g.reader
}

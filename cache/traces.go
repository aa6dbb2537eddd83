package cache

import (
	"cmp"
	"slices"
	"time"

	"rankfs/cache/trace"
)

// Traces are the opens of the latest readers, one trace each, and the graphs learnt
// from them. The cache's lock guards them.
type traces struct {
	of     map[tracedKey]*traced
	learnt map[string]*trace.Graph // by the dataset of plans
	routes []*route                // of readers of these
	routed int                     // steps that they have
}

// A tracedKey is one rank of a plan.
type tracedKey struct {
	plan [16]byte
	rank uint64
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

// trace notes an open. What batches are made of is not opened by readers.
func (rs *readers) trace(p Plan, rank, step uint64, now time.Time) {
	if p.Shared() {
		return
	}
	t, k := &rs.traces, tracedKey{p.ID(), rank}
	r := t.of[k]
	if r == nil {
		t.makeRoom()
		r = &traced{trace: trace.Trace{Rank: rank, Steps: p.Steps()}}
		t.of[k] = r
	}
	r.seen = now
	r.trace.Add(step)
	if r.route == nil && t.learnt != nil {
		rs.predict(r, p, now)
	}
	if r.route != nil {
		r.route.opens(step, now)
	}
}

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

// A Traced is the opens of one rank of a plan.
type Traced struct {
	Plan [16]byte
	trace.Trace
}

// Traces returns the opens of the latest readers, the latest reader first.
func (c *Cache) Traces() []Traced {
	type one struct {
		Traced
		seen time.Time
	}
	var all []one
	c.mu.Lock()
	for k, r := range c.mu.readers.traces.of {
		o := one{Traced{k.plan, r.trace}, r.seen}
		o.Runs = slices.Clone(o.Runs)
		all = append(all, o)
	}
	c.mu.Unlock()
	slices.SortFunc(all, func(a, b one) int {
		return cmp.Or(b.seen.Compare(a.seen), cmp.Compare(a.Rank, b.Rank), slices.Compare(a.Plan[:], b.Plan[:]))
	})
	sorted := make([]Traced, len(all))
	for i := range all {
		sorted[i] = all[i].Traced
	}
	return sorted
}

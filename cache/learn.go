package cache

import (
	"cmp"
	"slices"
	"time"

	"rankfs/cache/trace"
)

// A Traced is the opens of one rank of a series.
type Traced struct {
	Series [16]byte
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
		o := one{Traced{k.series, r.trace}, r.seen}
		o.Runs = slices.Clone(o.Runs)
		all = append(all, o)
	}
	c.mu.Unlock()
	slices.SortFunc(all, func(a, b one) int {
		return cmp.Or(b.seen.Compare(a.seen), cmp.Compare(a.Rank, b.Rank), slices.Compare(a.Series[:], b.Series[:]))
	})
	sorted := make([]Traced, len(all))
	for i := range all {
		sorted[i] = all[i].Traced
	}
	return sorted
}

// Learn says what is known of readers, by the dataset of their series. Readers of
// which something else was known begin anew.
func (c *Cache) Learn(of map[string]*trace.Graph) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.mu.readers.traces
	for _, r := range t.of {
		if r.route != nil && of[r.route.series.Dataset] != r.route.graph {
			t.forgetRoute(r)
		}
	}
	t.learnt = of
}

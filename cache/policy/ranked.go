package policy

import (
	"cmp"
	"math"
	"slices"
)

// An order is the rule by which one of two bundles stays rather than the other.
type order uint8

const (
	byLast  order = iota // lru: the bundle used last
	byCount              // lrc: the bundle with most uses to come
	byNext               // mrd: the bundle used soonest
)

// Ranked keeps bundles at one level, the first in its order until it is full. By it mckp is
// compared with lru, least reference count, most reference distance, and everything at one
// level.
//
// All-ram and all-packed differ from lru in nothing but the level: that is what
// Spark does with a persisted set. Unlike mckp they know no price: they take bundles in
// their order, at any cost of bringing them.
type ranked struct {
	by     order
	at     Level
	future forecast
	draft  draft
	counts map[int32]float64 // by Set: known uses to come of an item, on the mean
}

func (r *ranked) Choose(p *Problem, levels []Level) {
	r.future.learn(p)
	r.draft.begin(p, &r.future, 0)
	r.count(p)
	bundles := make([]*bundle, len(r.draft.bundles))
	for i := range bundles {
		bundles[i] = &r.draft.bundles[i]
	}
	slices.SortStableFunc(bundles, func(a, b *bundle) int {
		return cmp.Or(cmp.Compare(r.rank(b), r.rank(a)), cmp.Compare(b.now, a.now),
			cmp.Compare(a.next, b.next), cmp.Compare(b.last, a.last))
	})
	for _, b := range bundles {
		if b.level < r.at {
			r.draft.put(b, r.at)
		}
	}
	r.draft.finish(levels)
}

func (r *ranked) rank(b *bundle) float64 {
	switch r.by {
	case byCount:
		return r.future.known(b.first)
	case byNext:
		return -b.next
	}
	return b.last
}

// count learns how often the items of a set will be used: Worth is not told.
func (r *ranked) count(p *Problem) {
	if r.by != byCount {
		return
	}
	r.counts = map[int32]float64{}
	sizes := map[int32]float64{}
	for i := range p.Items {
		sizes[p.Items[i].Series]++
		r.counts[p.Items[i].Series] += r.future.known(int32(i))
	}
	for set, n := range sizes {
		r.counts[set] /= n
	}
}

// known is the number of known uses of an item.
func (f *forecast) known(item int32) float64 {
	if math.IsInf(f.next[item], 1) {
		return 0
	}
	return f.uses[item] - again
}

func (r *ranked) Worth(i *Item, next float64) float64 {
	switch {
	case i.Stays():
		return math.Inf(1)
	case r.by == byLast && r.at == Packed:
		return packedFirst(i)
	case r.by == byLast:
		return i.Last
	case math.IsInf(next, 1):
		return unknown + i.Last
	case r.by == byCount:
		// Counts first, then the later use: a tie-break of at most one count.
		return r.counts[i.Series] + i.Last/-unknown
	}
	return -next
}

// packedFirst is by last use, but what is packed stays before all that is not: a
// slab that leaves memory is packed because it was used longest ago, and by that
// alone would go again at once, so that nothing would ever be packed for long.
func packedFirst(i *Item) float64 {
	if i.Now == Packed {
		return i.Last
	}
	return unknown + i.Last
}

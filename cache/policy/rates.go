package policy

import (
	"cmp"
	"math"
	"slices"
)

const (
	bins   = 512 // of uses, at most: memory has one price in each
	rounds = 64
)

// Rates are prices of memory that change over time.
type rates struct {
	spans  []span
	items  []Item
	share  []float64 // by item: the part of a move that a span bears
	memory float64
	rate   []float64 // by bin
	paid   []float64 // by time: the sum of the rates before
	used   []float64 // by time: bytes
}

// prices iterates towards the prices at which what is worth its price just
// fills memory at every step, and chooses spans at these.
func prices(spans []span, times int, items []Item, memory int64) []float64 {
	r := &rates{spans: spans, items: items, memory: math.Max(float64(memory), 1), share: make([]float64, len(items)),
		rate: make([]float64, min(bins, times)), paid: make([]float64, times), used: make([]float64, times+1)}
	for _, s := range spans {
		r.share[s.item]++
	}
	for i, spans := range r.share {
		r.share[i] = 1 / math.Max(spans, 1)
	}
	r.begin()
	for k := range rounds {
		r.demand()
		r.adjust(1 / math.Sqrt(float64(k+1)))
	}
	r.sum()
	r.pack()
	return r.paid
}

// value is the time that a span saves at a level: the wait of a use, less its part of
// the move.
func (r *rates) value(s *span, at Level) float64 {
	i := &r.items[s.item]
	if i.Bytes[at] < 0 {
		return math.Inf(-1)
	}
	return i.saved(at) - r.share[s.item]*i.cost(at)
}

// begin sets all prices to the mean of what spans save for their bytes.
func (r *rates) begin() {
	saved, bytes := 0.0, 0.0
	for k := range r.spans {
		s := &r.spans[k]
		if gain := r.value(s, RAM); gain > 0 {
			saved += gain
			bytes += float64(r.items[s.item].Bytes[RAM]) * float64(s.to-s.from)
		}
	}
	for b := range r.rate {
		r.rate[b] = saved / math.Max(bytes, 1)
	}
}

// sum adds the rates up.
func (r *rates) sum() {
	for t := 1; t < len(r.paid); t++ {
		r.paid[t] = r.paid[t-1] + r.rate[r.bin(t-1)]
	}
}

func (r *rates) bin(t int) int { return t * len(r.rate) / len(r.paid) }

// demand lets every span choose, and adds up what memory that takes.
func (r *rates) demand() {
	r.sum()
	clear(r.used)
	for k := range r.spans {
		s := &r.spans[k]
		if at, profit := r.best(s); profit > 0 {
			bytes := float64(r.items[s.item].Bytes[at])
			r.used[s.from] += bytes
			r.used[s.to] -= bytes
		}
	}
	for t := 1; t < len(r.used); t++ {
		r.used[t] += r.used[t-1]
	}
}

// best is the level at which a span gains most at these prices.
func (r *rates) best(s *span) (at Level, profit float64) {
	for l := Packed; l <= RAM; l++ {
		if gain := r.value(s, l) - r.dues(s, l); gain > profit {
			at, profit = l, gain
		}
	}
	return at, profit
}

func (r *rates) dues(s *span, at Level) float64 {
	return float64(r.items[s.item].Bytes[at]) * (r.paid[s.to] - r.paid[s.from])
}

// adjust raises prices where more is wanted than there is, and lowers the others.
func (r *rates) adjust(pace float64) {
	over, count := make([]float64, len(r.rate)), make([]float64, len(r.rate))
	for t := range r.paid {
		over[r.bin(t)] += r.used[t] - r.memory
		count[r.bin(t)]++
	}
	for b := range r.rate {
		much := over[b] / math.Max(count[b], 1) / r.memory
		r.rate[b] *= math.Exp(pace * math.Min(math.Max(much, -1), 1))
	}
}

// pack takes spans by what they save for their price, as long as they fit.
func (r *rates) pack() {
	type wish struct {
		span  int32
		worth float64
	}
	var wishes []wish
	for k := range r.spans {
		s := &r.spans[k]
		at, profit := r.best(s)
		if profit <= 0 {
			// Dear at these prices, but there may be room left.
			if at = RAM; r.value(s, RAM) <= 0 {
				continue
			}
		}
		s.level = at
		wishes = append(wishes, wish{int32(k), r.value(s, at) / math.Max(r.dues(s, at), 1e-12)})
	}
	slices.SortStableFunc(wishes, func(a, b wish) int { return cmp.Compare(b.worth, a.worth) })
	tree := newPeaks(len(r.paid))
	for _, w := range wishes {
		r.fit(tree, &r.spans[w.span])
	}
}

func (r *rates) fit(tree *peaks, s *span) {
	wish := s.level
	for _, at := range []Level{wish, Packed + RAM - wish} {
		if r.value(s, at) <= 0 {
			continue
		}
		bytes := r.items[s.item].Bytes[at]
		if tree.most(int(s.from), int(s.to))+bytes <= int64(r.memory) {
			tree.add(int(s.from), int(s.to), bytes)
			s.level = at
			return
		}
	}
	s.level = Source
}

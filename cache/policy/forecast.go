package policy

import "math"

const (
	// An item that is known to be used is presumed to be wanted after the horizon
	// as well: an epoch is seldom the last. A quarter of a use lets items that are
	// not here yet enter, and stays below those that are kept and were used within
	// the last horizon, so it evicts nothing that is alive.
	again = 0.25

	// An item that is not known to be used is worth at most half a use, and half
	// of that if it was not used for as long as the horizon.
	hunch = 0.5
)

// A forecast says how often each item is used over the horizon, and when first.
type forecast struct {
	uses []float64
	next []float64 // +Inf: not known
	span float64   // seconds to the last use that is known; above zero
}

func (f *forecast) learn(p *Problem) {
	f.uses = resize(f.uses, len(p.Items))
	f.next = resize(f.next, len(p.Items))
	for i := range p.Items {
		f.uses[i], f.next[i] = 0, math.Inf(1)
	}
	for _, u := range p.Uses {
		if f.uses[u.Item] == 0 {
			f.next[u.Item] = u.At
		}
		f.uses[u.Item]++
	}
	f.span = horizon(p)
	for i := range p.Items {
		f.uses[i] += f.unknown(&p.Items[i], p.Now, f.uses[i] > 0)
	}
}

// unknown is the number of uses that are expected beyond those that are known.
func (f *forecast) unknown(i *Item, now float64, known bool) float64 {
	switch {
	case known:
		return again
	case i.Last < 0:
		return 0
	}
	return hunch * f.span / (f.span + math.Max(0, now-i.Last))
}

// horizon is how far the future is known, or if it is not, how long ago things
// were used on the mean.
func horizon(p *Problem) float64 {
	if n := len(p.Uses); n > 0 {
		return math.Max(p.Uses[n-1].At-p.Now, 1e-3)
	}
	sum, n := 0.0, 0.0
	for i := range p.Items {
		if last := p.Items[i].Last; last >= 0 {
			sum, n = sum+math.Max(0, p.Now-last), n+1
		}
	}
	return math.Max(sum/math.Max(n, 1), 1e-3)
}

// saved is the time that an open waits less than if the item were at its source.
func (i *Item) saved(l Level) float64 { return i.Wait[Source] - i.Wait[l] }

// cost is the work to bring the item to a level. From a slower one its bytes
// must come into memory first: the open that brings them waits that long, or the
// worker that fetches them ahead. So an item that is not here gains nothing from its
// first use, and of two items with equally many uses the one that is here stays.
func (i *Item) cost(l Level) float64 {
	if l == i.Now || l == Source {
		return 0
	}
	return i.Move[l] + math.Max(0, i.Wait[i.Now]-i.Wait[l])
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

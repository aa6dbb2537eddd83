package policy

import "math"

const (
	// A move has to gain more than it costs by this share, or everything stays:
	// measured waits vary by a few per cent from choice to choice.
	reluctance = 0.05

	// unknown is below the worth of everything that is known to be used.
	unknown = -1e12
)

func (m *mckp) Choose(p *Problem, levels []Level) {
	m.scratch = scratches.Get().(*scratch)
	defer func() {
		scratches.Put(m.scratch)
		m.scratch = nil
	}()
	m.future.learn(p)
	m.draft.begin(p, &m.future, reluctance)
	m.divide()
	m.draft.more(m.draft.bundles)
	m.draft.keep()
	m.draft.finish(levels)
}

// Worth is an item's saving for its bytes at the price of memory, in seconds for
// which that pays, less the time until it is used. With equal sizes and
// waits that is Belady's order; with equal times the knapsack's. What is packed is worth
// the same whenever it is used: it was packed to stay until then, and a batch that is
// brought in its place, to be read sooner, leaves again before.
func (m *mckp) Worth(i *Item, next float64) float64 {
	if i.Stays() {
		return math.Inf(1)
	}
	if math.IsInf(next, 1) {
		return unknown + i.Last
	}
	at, dear := i.Now, m.price(i.Job)
	pays := dear.mem
	switch at {
	case Packed:
		next = 0
	case Disk:
		pays = dear.disk
	case Source:
		at = RAM
	}
	return math.Max(pays*i.saved(at)/math.Max(float64(i.Bytes[at]), 1)-next, unknown/2)
}

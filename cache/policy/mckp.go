package policy

import (
	"math"
	"sync"
)

const (
	// A move has to gain more than it costs by this share, or everything stays:
	// measured waits vary by a few per cent from choice to choice.
	reluctance = 0.05

	// unknown is below the worth of everything that is known to be used.
	unknown = -1e12
)

// Mckp is the multiple-choice knapsack: one level for each bundle, the gains
// summed up as large as memory and disk allow. The price of disk is found by
// bisection; at a price, memory goes to the steepest steps of the bundles' convex
// hulls, which is optimal but for the last step that does not fit. So at most
// two bundles have not what the linear program would give them.
type mckp struct {
	*scratch // while a choice is made
	dear     price
	jobs     map[int32]price // where there are several
}

// A scratch is the memory in which a choice is made, 300 bytes for an item. One
// policy may be asked for worths while another makes the next choice, so they take it from a
// pool, for one choice at a time.
type scratch struct {
	future forecast
	draft  draft
	tally  tally
	ties   []step
	saved  []Level
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// A price is the inverse of the cost of a byte per second, so that it multiplies.
type price struct{ mem, disk float64 }

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

func (*mckp) Divides() bool { return true }

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

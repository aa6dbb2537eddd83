package policy

import (
	"math"
	"sync"
)

// Mckp is the multiple-choice knapsack: one level for each bundle, the gains
// summed up as large as memory and disk allow. The price of disk is found by
// bisection; at a price, memory goes to the steepest upgrades of the bundles' convex
// hulls, which is optimal but for the last upgrade that does not fit. So at most
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
	slopes slopeSums
	ties   []upgrade
	saved  []Level
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// A price is the inverse of the cost of a byte per second, so that it multiplies.
type price struct{ mem, disk float64 }

// solve gives the bundles of one job their levels, within its share.
func (m *mckp) solve(bundles []bundle, share room, before price) price {
	mem, disk := m.slopes.prices(bundles, share)
	m.place(bundles, share, mem, disk)
	m.stay(bundles, share)
	return price{m.slow(mem, before.mem), m.slow(disk, before.disk)}
}

// slow is the seconds for which a gain of one second per byte pays for the
// byte. What is not scarce keeps the price that it had.
func (m *mckp) slow(price, before float64) float64 {
	if price <= 0 {
		return before
	}
	return m.future.span / price
}

// place goes up the hulls from the levels without memory, and puts on disk
// what did not get memory. If disk is scarce, it also tries the other way
// round, and takes the better one.
func (m *mckp) place(bundles []bundle, share room, mem, disk float64) {
	d := &m.draft
	kept := d.left.less(share)
	d.left = share
	d.climb(bundles, disk)
	d.disk(bundles)
	d.more(bundles)
	if disk > 0 {
		gain := m.save(bundles)
		left := d.left
		d.left = d.strip(bundles)
		m.diskFirst(bundles, mem, disk)
		if m.sum(bundles) <= gain {
			d.left = left
			m.restore(bundles)
		}
	}
	d.left = d.left.plus(kept)
}

// diskFirst puts on disk the bundles that at these prices are no worse there than at any
// other level, until disk is full, and then goes up from there. When bundles are equal
// and prices right, every bundle is worth the same at either level, so the hull does not
// tell which bundle goes where: only that both budgets are to be full.
func (m *mckp) diskFirst(bundles []bundle, mem, disk float64) {
	m.ties = m.ties[:0]
	for i := range bundles {
		b := &bundles[i]
		lost, ok := b.regret(mem, disk)
		switch near := 1e-3 * b.gain[Disk]; {
		case !ok || lost > near:
		case lost < -near:
			m.draft.put(b, Disk)
		default:
			m.ties = append(m.ties, upgrade{slope: -lost, bundle: int32(i), bytes: b.bytes[Disk]})
		}
	}
	room := func() int64 { return m.draft.left.disk }
	choose(bundles, m.ties, room, func(b *bundle, _ upgrade) { m.draft.put(b, Disk) }, 0)
	m.draft.more(bundles)
}

// regret is the gain that a bundle would have elsewhere beyond that on disk, what it
// pays included. It says whether disk is a choice at all.
func (b *bundle) regret(mem, disk float64) (float64, bool) {
	if b.level != Source || b.bytes[Disk] < 0 || b.gain[Disk] <= 0 {
		return 0, false
	}
	best := 0.0
	for at := Packed; at <= RAM; at++ {
		if b.can(at) {
			best = math.Max(best, b.gain[at]-mem*float64(b.bytes[at]))
		}
	}
	return best - (b.gain[Disk] - disk*float64(b.bytes[Disk])), true
}

// save remembers the levels, and returns their gain.
func (m *mckp) save(bundles []bundle) float64 {
	m.saved = resize(m.saved, len(bundles))
	for i := range bundles {
		m.saved[i] = bundles[i].level
	}
	return m.sum(bundles)
}

func (m *mckp) restore(bundles []bundle) {
	for i := range bundles {
		bundles[i].level = m.saved[i]
	}
}

func (m *mckp) sum(bundles []bundle) float64 {
	sum := 0.0
	for i := range bundles {
		sum += bundles[i].gain[bundles[i].level]
	}
	return sum
}

// stay takes a choice back that is not worth its moves: if everything may stay
// where it is and the choice gains less than a share of its moves, rounding has
// found another way to the same end.
func (m *mckp) stay(bundles []bundle, share room) {
	now, then := 0.0, 0.0
	var used, pins room
	for i := range bundles {
		b := &bundles[i]
		if b.now == Levels || b.now < b.base || b.base > Source && b.now < b.floor || !b.can(b.now) {
			return
		}
		now += b.gain[b.now]
		then += b.gain[b.level]
		used = used.plus(b.takes(b.now))
		pins = pins.plus(b.takes(b.base))
	}
	if then > now || !share.plus(pins).holds(used) {
		return
	}
	for i := range bundles {
		m.draft.left = m.draft.left.plus(bundles[i].takes(bundles[i].level)).less(bundles[i].takes(bundles[i].now))
		bundles[i].level = bundles[i].now
	}
}

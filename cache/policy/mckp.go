package policy

import "math"

const (
	// A move has to gain more than it costs by this share, or everything stays:
	// measured waits vary by a few per cent from plan to plan.
	reluctance = 0.05

	// unknown is below the worth of everything that is known to be used.
	unknown = -1e12
)

// Mckp is the multiple-choice knapsack: one level for each lot, the gains
// summed up as large as memory and disk allow. The price of disk is found by
// bisection; at a price, memory goes to the steepest steps of the lots' convex
// hulls, which is optimal but for the last step that does not fit. So at most
// two lots have not what the linear program would give them.
type mckp struct {
	future forecast
	draft  draft
	tally  tally
	dear   price
	jobs   map[int32]price // where there are several

	ties  []step // scratch
	saved []Level
}

// A price is the inverse of the cost of a byte per second, so that it multiplies.
type price struct{ mem, disk float64 }

func (m *mckp) Plan(p *Problem, levels []Level) {
	m.future.learn(p)
	m.draft.begin(p, &m.future, reluctance)
	m.divide()
	m.draft.more(m.draft.lots)
	m.draft.keep()
	m.draft.finish(levels)
}

// solve gives the lots of one job their levels, within its share.
func (m *mckp) solve(lots []lot, share room, before price) price {
	mem, disk := m.tally.prices(lots, share)
	m.place(lots, share, mem, disk)
	m.stay(lots, share)
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
func (m *mckp) place(lots []lot, share room, mem, disk float64) {
	d := &m.draft
	kept := d.left.less(share)
	d.left = share
	d.climb(lots, disk)
	d.disk(lots)
	d.more(lots)
	if disk > 0 {
		gain := m.save(lots)
		left := d.left
		d.left = d.strip(lots)
		m.diskFirst(lots, mem, disk)
		if m.sum(lots) <= gain {
			d.left = left
			m.restore(lots)
		}
	}
	d.left = d.left.plus(kept)
}

// diskFirst puts on disk the lots that at these prices are no worse there than at any
// other level, until disk is full, and then goes up from there. When lots are equal
// and prices right, every lot is worth the same at either level, so the hull does not
// tell which lot goes where: only that both budgets are to be full.
func (m *mckp) diskFirst(lots []lot, mem, disk float64) {
	m.ties = m.ties[:0]
	for i := range lots {
		l := &lots[i]
		lost, ok := l.regret(mem, disk)
		switch near := 1e-3 * l.gain[Disk]; {
		case !ok || lost > near:
		case lost < -near:
			m.draft.put(l, Disk)
		default:
			m.ties = append(m.ties, step{slope: -lost, lot: int32(i), bytes: l.bytes[Disk]})
		}
	}
	room := func() int64 { return m.draft.left.disk }
	choose(lots, m.ties, room, func(l *lot, _ step) { m.draft.put(l, Disk) }, 0)
	m.draft.more(lots)
}

// regret is how much more a lot would gain elsewhere than on disk, what it
// pays included. It says whether disk is a choice at all.
func (l *lot) regret(mem, disk float64) (float64, bool) {
	if l.level != Source || l.bytes[Disk] < 0 || l.gain[Disk] <= 0 {
		return 0, false
	}
	best := 0.0
	for at := Packed; at <= RAM; at++ {
		if l.can(at) {
			best = math.Max(best, l.gain[at]-mem*float64(l.bytes[at]))
		}
	}
	return best - (l.gain[Disk] - disk*float64(l.bytes[Disk])), true
}

// save remembers the levels, and returns their gain.
func (m *mckp) save(lots []lot) float64 {
	m.saved = resize(m.saved, len(lots))
	for i := range lots {
		m.saved[i] = lots[i].level
	}
	return m.sum(lots)
}

func (m *mckp) restore(lots []lot) {
	for i := range lots {
		lots[i].level = m.saved[i]
	}
}

func (m *mckp) sum(lots []lot) float64 {
	sum := 0.0
	for i := range lots {
		sum += lots[i].gain[lots[i].level]
	}
	return sum
}

// stay takes a plan back that is not worth its moves: if everything may stay
// where it is and the plan gains less than a share of its moves, rounding has
// found another way to the same end.
func (m *mckp) stay(lots []lot, share room) {
	now, then := 0.0, 0.0
	var used, pins room
	for i := range lots {
		l := &lots[i]
		if l.now == Levels || l.now < l.base || l.base > Source && l.now < l.floor || !l.can(l.now) {
			return
		}
		now += l.gain[l.now]
		then += l.gain[l.level]
		used = used.plus(l.takes(l.now))
		pins = pins.plus(l.takes(l.base))
	}
	if then > now || !share.plus(pins).holds(used) {
		return
	}
	for i := range lots {
		m.draft.left = m.draft.left.plus(lots[i].takes(lots[i].level)).less(lots[i].takes(lots[i].now))
		lots[i].level = lots[i].now
	}
}

// Worth is an item's saving for its bytes at the price of memory, in seconds for
// which that pays, less the time until it is used. With equal sizes and
// waits that is Belady's order; with equal times the knapsack's.
func (m *mckp) Worth(i *Item, next float64) float64 {
	if i.Floor > Source && i.Now <= i.Floor {
		return math.Inf(1)
	}
	if math.IsInf(next, 1) {
		return unknown + i.Last
	}
	at, dear := i.Now, m.price(i.Job)
	if at == Source {
		at = RAM
	}
	pays := dear.mem
	if at == Disk {
		pays = dear.disk
	}
	return math.Max(pays*i.saved(at)/math.Max(float64(i.Bytes[at]), 1)-next, unknown/2)
}

// price is the last plan's price for a job.
func (m *mckp) price(job int32) price {
	if len(m.jobs) > 0 {
		if own, ok := m.jobs[job]; ok {
			return own
		}
	}
	return m.dear
}

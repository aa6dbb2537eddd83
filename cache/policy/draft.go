package policy

import (
	"cmp"
	"math"
	"slices"
)

// Room is memory and disk, in bytes.
type room struct{ mem, disk int64 }

func (r room) holds(o room) bool { return o.mem <= r.mem && o.disk <= r.disk }
func (r room) less(o room) room  { return room{r.mem - o.mem, r.disk - o.disk} }
func (r room) plus(o room) room  { return room{r.mem + o.mem, r.disk + o.disk} }

// A lot is the unit of a move: an item, or all items of a group.
type lot struct {
	bytes [Levels]int64   // below zero: it cannot be there
	gain  [Levels]float64 // over the horizon, against the source
	next  float64         // the first use that is known, or +Inf
	last  float64
	job   int32
	first int32 // of its items; draft.link has the others
	now   Level // Levels: some here, some there
	floor Level
	base  Level // where its pin holds it; Source if it has none, or none that fits
	level Level // where it shall be
}

// takes is the room that the lot needs at a level.
func (l *lot) takes(at Level) room {
	switch at {
	case Disk:
		return room{disk: l.bytes[Disk]}
	case Packed, RAM:
		return room{mem: l.bytes[at]}
	}
	return room{}
}

func (l *lot) can(at Level) bool { return at == Source || l.bytes[at] >= 0 }

// A draft is a plan in the making: the lots, where they shall be so far, and
// the room that is left. Pins stand already when a planner gets it.
type draft struct {
	lots   []lot
	link   []int32 // from an item to the next one of its lot; nil: no groups
	of     []int32 // from an item to its lot; nil: its number
	left   room
	spare  []lot
	ladder ladder
}

// begin makes lots of items. A level other than the present one is worth less
// by a share of what the move costs.
func (d *draft) begin(p *Problem, f *forecast, reluctance float64) {
	d.gather(p, f, reluctance)
	d.left = room{max(p.Memory, 0), max(p.Disk, 0)}
	d.pin()
}

func (d *draft) gather(p *Problem, f *forecast, reluctance float64) {
	d.lots, d.link, d.of = resize(d.lots, len(p.Items)), nil, nil
	grouped := false
	for i := range p.Items {
		d.lots[i] = lotOf(p, f, i, reluctance)
		grouped = grouped || p.Items[i].Group >= 0
	}
	if grouped {
		d.merge(p)
	}
}

func lotOf(p *Problem, f *forecast, i int, reluctance float64) lot {
	it := &p.Items[i]
	l := lot{bytes: it.Bytes, next: f.next[i], last: it.Last, job: it.Job, first: int32(i), now: it.Now, floor: it.Floor}
	if it.Bytes[Source] < 0 {
		l.floor = max(l.floor, Disk)
	}
	for at := Disk; at < Levels; at++ {
		l.gain[at] = f.uses[i]*it.saved(at) - (1+reluctance)*it.cost(at)
	}
	return l
}

// merge makes one lot of each group, at the place of its first item.
func (d *draft) merge(p *Problem) {
	d.link, d.of = make([]int32, len(p.Items)), make([]int32, len(p.Items))
	lots, tails := d.lots[:0], make(map[int32]int32, len(p.Items)/2)
	for i := range p.Items {
		l := d.lots[i]
		d.link[i] = -1
		if g := p.Items[i].Group; g >= 0 {
			tail, more := tails[g]
			tails[g] = int32(i)
			if more {
				d.link[tail], d.of[i] = int32(i), d.of[tail]
				lots[d.of[tail]].add(&l)
				continue
			}
		}
		d.of[i] = int32(len(lots))
		lots = append(lots, l)
	}
	d.lots = lots
}

func (l *lot) add(o *lot) {
	for at := range Levels {
		l.gain[at] += o.gain[at]
		if l.bytes[at] < 0 || o.bytes[at] < 0 {
			l.bytes[at] = -1
		} else {
			l.bytes[at] += o.bytes[at]
		}
	}
	l.next, l.last = math.Min(l.next, o.next), math.Max(l.last, o.last)
	l.floor = max(l.floor, o.floor)
	if l.job < 0 || o.job >= 0 && o.job < l.job {
		l.job = o.job
	}
	if l.now != o.now {
		l.now = Levels
	}
}

// pin puts each pinned lot at its floor, or if that level is full above it. If not
// all lots fit, those with most gain for their bytes come first.
func (d *draft) pin() {
	var pins []*lot
	for i := range d.lots {
		if d.lots[i].floor > Source {
			pins = append(pins, &d.lots[i])
		}
	}
	slices.SortStableFunc(pins, func(a, b *lot) int {
		return cmp.Or(cmp.Compare(b.density(b.floor), a.density(a.floor)), cmp.Compare(a.next, b.next))
	})
	for _, l := range pins {
		for at := l.floor; at < Levels; at++ {
			if d.put(l, at) {
				l.base = at
				break
			}
		}
	}
}

func (l *lot) density(at Level) float64 { return l.gain[at] / math.Max(1, float64(l.bytes[at])) }

// put moves a lot to a level if it can be there and the room suffices.
func (d *draft) put(l *lot, at Level) bool {
	free := d.left.plus(l.takes(l.level))
	if need := l.takes(at); l.can(at) && free.holds(need) {
		d.left, l.level = free.less(need), at
		return true
	}
	return false
}

// lot gives the lot of an item.
func (d *draft) lot(item int) *lot {
	if d.of == nil {
		return &d.lots[item]
	}
	return &d.lots[d.of[item]]
}

// keep leaves items without a place where they are, the latest used first, while
// there is room: that takes nothing from the items with a place.
func (d *draft) keep() {
	var idle []*lot
	for i := range d.lots {
		if l := &d.lots[i]; l.level == Source && l.now > Source && l.now < Levels && d.left.holds(l.takes(l.now)) {
			idle = append(idle, l)
		}
	}
	slices.SortStableFunc(idle, func(a, b *lot) int {
		return cmp.Or(cmp.Compare(a.next, b.next), cmp.Compare(b.last, a.last))
	})
	for _, l := range idle {
		d.put(l, l.now)
	}
}

// finish says of each item where it shall be.
func (d *draft) finish(levels []Level) {
	for k := range d.lots {
		l := &d.lots[k]
		for i := l.first; i >= 0; i = d.following(i) {
			levels[i] = l.level
		}
	}
}

func (d *draft) following(i int32) int32 {
	if d.link == nil {
		return -1
	}
	return d.link[i]
}

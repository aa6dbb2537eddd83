package policy

import (
	"cmp"
	"slices"
)

// A draft is a choice in the making: the bundles, where they shall be so far, and
// the room that is left. Pins stand already when a policy gets it.
type draft struct {
	bundles []bundle
	link    []int32 // from an item to the next one of its bundle; nil: no groups
	of      []int32 // from an item to its bundle; nil: its number
	left    room
	spare   []bundle
	ladder  ladder
}

// begin makes bundles of items. A level other than the present one is worth less
// by a share of what the move costs.
func (d *draft) begin(p *Problem, f *forecast, reluctance float64) {
	d.gather(p, f, reluctance)
	d.left = room{max(p.Memory, 0), max(p.Disk, 0)}
	d.pin()
}

func (d *draft) gather(p *Problem, f *forecast, reluctance float64) {
	d.bundles, d.link, d.of = resize(d.bundles, len(p.Items)), nil, nil
	grouped := false
	for i := range p.Items {
		d.bundles[i] = bundleOf(p, f, i, reluctance)
		grouped = grouped || p.Items[i].Group >= 0
	}
	if grouped {
		d.merge(p)
	}
}

func bundleOf(p *Problem, f *forecast, i int, reluctance float64) bundle {
	it := &p.Items[i]
	b := bundle{bytes: it.Bytes, next: f.next[i], last: it.Last, job: it.Job, first: int32(i), now: it.Now, floor: it.Floor}
	if it.Bytes[Source] < 0 {
		b.floor = max(b.floor, Disk)
	}
	for at := Disk; at < Levels; at++ {
		b.gain[at] = f.uses[i]*it.saved(at) - (1+reluctance)*it.cost(at)
	}
	return b
}

// merge makes one bundle of each group, at the place of its first item.
func (d *draft) merge(p *Problem) {
	d.link, d.of = make([]int32, len(p.Items)), make([]int32, len(p.Items))
	bundles, tails := d.bundles[:0], make(map[int32]int32, len(p.Items)/2)
	for i := range p.Items {
		b := d.bundles[i]
		d.link[i] = -1
		if g := p.Items[i].Group; g >= 0 {
			tail, more := tails[g]
			tails[g] = int32(i)
			if more {
				d.link[tail], d.of[i] = int32(i), d.of[tail]
				bundles[d.of[tail]].add(&b)
				continue
			}
		}
		d.of[i] = int32(len(bundles))
		bundles = append(bundles, b)
	}
	d.bundles = bundles
}

// pin puts each pinned bundle at its floor, or if that level is full above it. If not
// all bundles fit, those with most gain for their bytes come first.
func (d *draft) pin() {
	var pins []*bundle
	for i := range d.bundles {
		if d.bundles[i].floor > Source {
			pins = append(pins, &d.bundles[i])
		}
	}
	slices.SortStableFunc(pins, func(a, b *bundle) int {
		return cmp.Or(cmp.Compare(b.density(b.floor), a.density(a.floor)), cmp.Compare(a.next, b.next))
	})
	for _, b := range pins {
		for at := b.floor; at < Levels; at++ {
			if d.put(b, at) {
				b.base = at
				break
			}
		}
	}
}

// put moves a bundle to a level if it can be there and the room suffices.
func (d *draft) put(b *bundle, at Level) bool {
	free := d.left.plus(b.takes(b.level))
	if need := b.takes(at); b.can(at) && free.holds(need) {
		d.left, b.level = free.less(need), at
		return true
	}
	return false
}

// bundle gives the bundle of an item.
func (d *draft) bundle(item int) *bundle {
	if d.of == nil {
		return &d.bundles[item]
	}
	return &d.bundles[d.of[item]]
}

// keep leaves items without a place where they are, the latest used first, while
// there is room: that takes nothing from the items with a place.
func (d *draft) keep() {
	var idle []*bundle
	for i := range d.bundles {
		if b := &d.bundles[i]; b.level == Source && b.now > Source && b.now < Levels && d.left.holds(b.takes(b.now)) {
			idle = append(idle, b)
		}
	}
	slices.SortStableFunc(idle, func(a, b *bundle) int {
		return cmp.Or(cmp.Compare(a.next, b.next), cmp.Compare(b.last, a.last))
	})
	for _, b := range idle {
		d.put(b, b.now)
	}
}

// finish says of each item where it shall be.
func (d *draft) finish(levels []Level) {
	for k := range d.bundles {
		b := &d.bundles[k]
		for i := b.first; i >= 0; i = d.following(i) {
			levels[i] = b.level
		}
	}
}

func (d *draft) following(i int32) int32 {
	if d.link == nil {
		return -1
	}
	return d.link[i]
}

package policy

import (
	"math"
	"sort"
)

const (
	// Uses beyond these do not change what is best to keep now, and a choice has
	// to end.
	foreseen = 1 << 18

	// Slabs times uses up to which the flow is solved: a second or so.
	flowWork = 1 << 22
)

// Interval chooses for a future that is known.
//
// With one level and equal slabs the choice of spans is a flow of as many units
// as there are slabs along the line of uses, and exact: by Belady's rule with
// bypass if every span saves the same (greedy, O(n log n)), and by min-cost flow
// if not (O(C n log n), for as long as C n is at most flowWork). Several levels
// or sizes, pins and groups, or more work than that are not exact: memory gets
// a price per step (iteration towards the dual of the linear program), and spans
// are taken by what they save for their price. What finds no memory goes to disk
// by its gain for its bytes.
type interval struct {
	future forecast
	draft  draft
	times  []float64 // of the uses; times[0] is now
	paid   []float64 // the price of a byte from now to each of them
	spans  []span
}

func (v *interval) Choose(p *Problem, levels []Level) {
	v.future.learn(p)
	v.draft.begin(p, &v.future, reluctance)
	v.cut(p)
	v.choose(p)
	v.target(p)
	v.draft.disk(v.draft.bundles)
	v.draft.keep()
	v.draft.finish(levels)
}

// cut makes the spans of what is known.
func (v *interval) cut(p *Problem) {
	uses := p.Uses[:min(len(p.Uses), foreseen)]
	v.times, v.spans, v.paid = append(v.times[:0], p.Now), v.spans[:0], nil
	last := make([]int32, len(p.Items))
	for i := range last {
		if p.Items[i].Now < Packed || v.draft.bundle(i).level > Disk {
			last[i] = -1
		}
	}
	for k, u := range uses {
		at := int32(k + 1)
		v.times = append(v.times, u.At)
		if from := last[u.Item]; from >= 0 {
			v.spans = append(v.spans, span{item: u.Item, from: from, to: at})
		}
		if v.draft.bundle(int(u.Item)).level <= Disk {
			last[u.Item] = at
		}
	}
}

func (v *interval) choose(p *Problem) {
	size, alike := v.equal(p)
	memory := v.draft.left.mem
	switch {
	case size > 0 && alike:
		belady(v.spans, len(v.times), memory/size)
	case size > 0 && min(memory/size, int64(len(v.spans)))*int64(len(v.times)) <= flowWork:
		v.paid = flow(v.spans, len(v.times), memory/size, func(s *span) float64 {
			return p.Items[s.item].saved(RAM)
		})
		for k := range v.paid {
			v.paid[k] /= float64(size)
		}
	default:
		v.paid = prices(v.spans, len(v.times), p.Items, memory)
	}
}

// equal says whether all that is used fits the same slab and can be in memory
// in one form only, and whether every use saves the same.
func (v *interval) equal(p *Problem) (size int64, alike bool) {
	alike = true
	if v.draft.of != nil || v.draft.left.mem != max(p.Memory, 0) {
		return 0, false
	}
	first := -1
	for _, s := range v.spans {
		i := &p.Items[s.item]
		if first < 0 {
			first, size = int(s.item), i.Bytes[RAM]
		}
		if i.Bytes[RAM] != size || i.Bytes[Packed] >= 0 || size <= 0 || i.saved(RAM) <= 0 {
			return 0, false
		}
		alike = alike && i.saved(RAM) == p.Items[first].saved(RAM)
	}
	return size, alike
}

// target makes levels of spans: first what is here and stays, then what comes
// with its first use, in that order.
func (v *interval) target(p *Problem) {
	seen := make([]bool, len(p.Items))
	for _, here := range []bool{true, false} {
		for _, k := range byStart(v.spans) {
			s := &v.spans[k]
			if (s.from == 0) != here || seen[s.item] {
				continue
			}
			seen[s.item] = true
			if b := v.draft.bundle(int(s.item)); s.level > b.level {
				v.draft.put(b, s.level)
			}
		}
	}
}

// Worth is an item's saving for its bytes less their cost until it is used, in
// seconds at the mean price.
func (v *interval) Worth(i *Item, next float64) float64 {
	if i.Stays() {
		return math.Inf(1)
	}
	if math.IsInf(next, 1) {
		return unknown + i.Last
	}
	last := len(v.paid) - 1
	if last < 1 || v.paid[last] <= 0 {
		return -next
	}
	at := max(i.Now, Packed)
	if i.Now == Source {
		at = RAM
	}
	rate := v.paid[last] / math.Max(v.times[last]-v.times[0], 1e-9)
	// The lesser term decides where prices tie.
	return math.Max((i.saved(at)/math.Max(float64(i.Bytes[at]), 1)-v.until(next, rate))/rate-1e-3*next, unknown/2)
}

// until is the price of a byte from now to a time; beyond what was foreseen
// it goes on at the mean rate.
func (v *interval) until(next, rate float64) float64 {
	k := sort.SearchFloat64s(v.times, next)
	switch {
	case k == 0:
		return 0
	case k == len(v.times):
		return v.paid[k-1] + rate*(next-v.times[k-1])
	}
	part := (next - v.times[k-1]) / (v.times[k] - v.times[k-1])
	return v.paid[k-1] + part*(v.paid[k]-v.paid[k-1])
}

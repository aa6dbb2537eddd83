package policy

import (
	"cmp"
	"math"
	"slices"
)

const (
	quarters = 4
	mixes    = (quarters + 1) * (quarters + 2) / 2 // parts of a set in RAM and packed
)

// A mix says how many quarters of a set are in RAM and packed; the rest is at
// its source.
type mix struct{ ram, packed int }

// A set is the items of a series, taken together.
type set struct {
	items []int32
	bytes [Levels]float64
	wait  [Levels]float64
	pack  float64 // work to pack all of it
	worth float64 // of all its known uses
	now   int     // mix
	packs bool
}

func (s *set) add(i *Item, number int32, uses float64) {
	s.items = append(s.items, number)
	for l := range Levels {
		s.bytes[l] += math.Max(0, float64(i.Bytes[l]))
		s.wait[l] += i.Wait[l]
	}
	s.pack += i.Move[Packed]
	s.worth += uses * i.saved(RAM)
	s.packs = s.packs && i.Bytes[Packed] >= 0
}

// order puts what is in memory first, so that a mix moves little, and finds
// the mix that there is.
func (s *set) order(p *Problem) {
	var at [Levels]int
	for _, i := range s.items {
		at[p.Items[i].Now]++
	}
	slices.SortStableFunc(s.items, func(a, b int32) int { return cmp.Compare(p.Items[b].Now, p.Items[a].Now) })
	ram := (at[RAM]*quarters + len(s.items)/2) / len(s.items)
	packed := (at[Packed]*quarters + len(s.items)/2) / len(s.items)
	s.now = slices.Index(allMixes[:], mix{ram, min(packed, quarters-ram)})
}

// allMixes, ascending in what is in RAM.
var allMixes = [mixes]mix{
	{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4},
	{1, 0}, {1, 1}, {1, 2}, {1, 3},
	{2, 0}, {2, 1}, {2, 2},
	{3, 0}, {3, 1},
	{4, 0},
}

// cost is the time of a pass over a set that goes from one mix to another.
func (s *set) cost(used float64, from, to int) float64 {
	u, v := allMixes[from], allMixes[to]
	if used == 0 && (v.ram > u.ram || v.packed > u.packed) {
		return math.Inf(1)
	}
	rest := quarters - u.ram - u.packed
	wait := float64(u.ram)*s.wait[RAM] + float64(u.packed)*s.wait[Packed] + float64(rest)*s.wait[Source]
	return (used*wait + float64(max(0, v.packed-u.packed))*s.pack) / quarters
}

func (s *set) memory(m mix) float64 {
	return (float64(m.ram)*s.bytes[RAM] + float64(m.packed)*s.bytes[Packed]) / quarters
}

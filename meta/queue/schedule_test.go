package queue

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// anyUnits draws some units on few nodes, so that holders are contended for.
func anyUnits(t *rapid.T) *freeUnits {
	nodes := rapid.IntRange(1, 6).Draw(t, "nodes")
	set := rapid.SliceOfN(rapid.IntRange(0, nodes-1), 0, 3)
	hold := rapid.SliceOfN(set, 0, 40).Draw(t, "hold")
	p, err := newFreeUnits(len(hold), func(unit int) (of []Holder) {
		for _, k := range hold[unit] {
			of = append(of, Holder{k, 1})
		}
		return of
	})
	if err != nil {
		t.Fatal(err)
	}
	p.grow(nodes - 1)
	return p
}

// limitAt has one reader on each node, with a quota.
func limitAt(t *rapid.T, f *flow) {
	f.bids = nil
	for k := range f.load {
		quota := rapid.IntRange(0, 12).Draw(t, "quota")
		f.bids = append(f.bids, bid{reader: &reader{node: k, quota: quota}})
	}
}

// A flow is as large as there is, however it came about: from nothing, or from
// the one for other limits and other units.
func TestFlowIsMaximal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFlow(anyUnits(t), &readers{})
		for round := range 4 {
			limitAt(t, f)
			f.match()
			f.made++
			checkFlow(t, f)
			assigned := 0
			for k, load := range f.load {
				if assigned += load; load > f.limit[k] {
					t.Fatalf("node %d has %d of %d", k, load, f.limit[k])
				}
			}
			if want := maxFlow(f); assigned != want {
				t.Fatalf("round %d: %d units assigned, %d can be", round, assigned, want)
			}
			disturb(t, f)
			checkFlow(t, f)
		}
	})
}

// disturb takes some units, assigned or not, and puts some back.
func disturb(t *rapid.T, f *flow) {
	for unit, state := range f.state {
		if !rapid.Bool().Draw(t, "disturb") {
			continue
		}
		if state == stateFree {
			f.state[unit] = 1
			f.take(unit)
			f.took(unit, rapid.IntRange(-1, len(f.load)-1).Draw(t, "by"))
		} else {
			f.state[unit] = stateFree
			f.put(unit)
			f.back(unit)
		}
	}
}

// checkFlow counts again what is counted all along.
func checkFlow(t *rapid.T, f *flow) {
	load, spare, here := make([]int, len(f.load)), make([]int, len(f.load)), make([]int, len(f.load))
	for g := range int32(len(f.groups) - 1) {
		placed := int32(0)
		for i, e := range f.of(g) {
			placed += f.assigned[f.groups[g].edge+int32(i)]
			load[e.node] += int(f.assigned[f.groups[g].edge+int32(i)])
			spare[e.node] += int(f.loose(g))
			here[e.node] += int(f.groups[g].free)
		}
		if placed != f.placed[g] || f.loose(g) < 0 || (f.loose(g) > 0) != (f.at[g] >= 0) {
			t.Fatalf("group %d: %d placed, counted as %d, of %d", g, placed, f.placed[g], f.groups[g].free)
		}
	}
	for k := range load {
		if load[k] != f.load[k] || spare[k] != f.spare[k] || here[k] != f.freeUnits.nodes[k].here {
			t.Fatalf("node %d: load %d, spare %d, here %d: counted as %d, %d, %d",
				k, load[k], spare[k], here[k], f.load[k], f.spare[k], f.freeUnits.nodes[k].here)
		}
	}
}

// maxFlow is the textbook's: unit by unit, the other way round, from nothing.
func maxFlow(f *flow) int {
	of := make([][]int, len(f.load)) // by node: units
	var try func(unit int, seen []bool) bool
	try = func(unit int, seen []bool) bool {
		for _, e := range f.freeUnits.of(f.group[unit]) {
			k := int(e.node)
			if seen[k] || f.limit[k] == 0 {
				continue
			}
			seen[k] = true
			if len(of[k]) < f.limit[k] {
				of[k] = append(of[k], unit)
				return true
			}
			for i, other := range of[k] {
				if try(other, seen) {
					of[k][i] = unit
					return true
				}
			}
		}
		return false
	}
	flow := 0
	for unit, state := range f.state {
		if state == stateFree && try(unit, make([]bool, len(f.load))) {
			flow++
		}
	}
	return flow
}

// Quotas end as early as if each unit went where it ends first.
func TestShareEndsEarliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(t, "units")
		var bids []bid
		for range rapid.IntRange(1, 8).Draw(t, "readers") {
			near := float64(rapid.IntRange(1, 50).Draw(t, "near"))
			bids = append(bids, bid{
				reader: &reader{},
				from:   float64(rapid.IntRange(0, 300).Draw(t, "from")),
				near:   near,
				far:    near + float64(rapid.IntRange(0, 50).Draw(t, "far")),
				local:  float64(rapid.IntRange(0, 20).Draw(t, "local")),
			})
		}
		share(bids, n)
		sum, got := 0, 0.0
		for _, b := range bids {
			if sum += b.quota; b.quota > 0 {
				b.quota--
				got = max(got, b.end())
				b.quota++
			}
		}
		if want := oneByOne(bids, n); sum != n || math.Abs(got-want) > 1e-6 {
			t.Fatalf("%d of %d units, the last at %v, want %v", sum, n, got, want)
		}
	})
}

func oneByOne(bids []bid, n int) (end float64) {
	for _, b := range bids {
		b.quota = 0
	}
	for range n {
		first := bids[0]
		for _, b := range bids {
			if b.end() < first.end() {
				first = b
			}
		}
		end = max(end, first.end())
		first.quota++
	}
	return end
}

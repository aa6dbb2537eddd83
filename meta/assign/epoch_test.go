package assign_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta"
	"rankfs/meta/assign"
)

func TestEpochCostsLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCase.Draw(t, "case")
		plan := c.epoch(t)
		checkWhole(t, c, plan.Division)
		cost, _ := c.cost(plan.Division)
		if want := leastCost(c); cost != want {
			t.Fatalf("costs %d, could cost %d:\n%v", cost, want, ranks(plan.Division))
		}
	})
}

// Few positions for each of many racks: where the second phase has to take
// back what it gave. One case in some thousands tells whether it goes only to
// targets where cost and price are least, so there are many.
func TestEpochOfRacksCostsLeast(t *testing.T) {
	mattered, cases := 0, uint64(13_000)
	for seed := range cases {
		c := scarceCase(rand.New(rand.NewPCG(seed, 77)))
		plan := c.epoch(t)
		cost, local := c.cost(plan.Division)
		if want := leastCost(c); cost != want {
			t.Fatalf("seed %d: costs %d, could cost %d:\n%v\n%v", seed, cost, want, c, ranks(plan.Division))
		}
		if 2*(len(c.of)-local) != cost {
			mattered++
		}
	}
	if mattered < 1000 {
		t.Errorf("racks mattered in %d cases of %d: these test too little", mattered, cases)
	}
}

// scarceCase has racks of any size, few positions a node, and all of them held
// by some of the nodes.
func scarceCase(r *rand.Rand) caseOf {
	c := caseOf{cluster: assign.Cluster{Nodes: 4 + r.IntN(7)}}
	var counts []int32
	racks, most := 2+r.IntN(4), 1+r.IntN(4)
	for node := range c.cluster.Nodes {
		c.cluster.RackOf = append(c.cluster.RackOf, int32(r.IntN(racks)))
		c.cluster.NodeOf = append(c.cluster.NodeOf, int32(node))
		counts = append(counts, int32(r.IntN(most+1)))
	}
	holders := 1 + r.IntN(c.cluster.Nodes)
	for _, n := range counts {
		for range n {
			var set []int32
			for range 1 + r.IntN(3) {
				set = append(set, int32(r.IntN(holders)))
			}
			c.of = append(c.of, int32(len(c.holders)))
			c.holders = append(c.holders, set)
		}
	}
	c.strict, _ = assign.Contiguous(counts)
	return c
}

// A strict division that is at the least distance and has most on hosts is left
// as it is.
func TestEpochKeepsStrictWhereItCan(t *testing.T) {
	kept := 0
	for seed := range uint64(3000) {
		c := rackCase(rand.New(rand.NewPCG(seed, 2)))
		if seed%2 == 0 { // most on their readers' nodes or racks
			c.placeStrict(rand.New(rand.NewPCG(seed, 3)))
		}
		plan := c.epoch(t)
		cost, local := c.cost(plan.Division)
		strictCost, strictLocal := c.cost(c.strict)
		if cost > strictCost {
			t.Fatalf("seed %d: costs %d, strict %d", seed, cost, strictCost)
		}
		if cost != strictCost || local != strictLocal || local != matching(c) {
			continue
		}
		if !equal(plan.Division, c.strict) {
			t.Fatalf("seed %d: got %v, want %v, of %v", seed, ranks(plan.Division), ranks(c.strict), c)
		}
		if 2*(len(c.of)-local) != cost {
			kept++
		}
	}
	if kept < 100 {
		t.Errorf("%d strict divisions could be kept that use racks: these test too little", kept)
	}
}

// placeStrict places what each rank reads under assign=strict on its node, or
// another of its rack, or anywhere.
func (c caseOf) placeStrict(r *rand.Rand) {
	for rank, node := range c.cluster.NodeOf {
		for _, position := range c.strict.Of(rank) {
			holder := node
			for r.IntN(3) == 0 {
				holder = int32(r.IntN(c.cluster.Nodes))
				if c.cluster.RackOf[holder] == c.cluster.RackOf[node] || r.IntN(9) == 0 {
					break
				}
			}
			c.holders[c.of[position]] = []int32{holder}
		}
	}
}

// rackCase has racks of two to four nodes, two replicas in one rack, and much
// of the data on few nodes.
func rackCase(r *rand.Rand) caseOf {
	var c caseOf
	for rack := range int32(2 + r.IntN(4)) {
		for range 2 + r.IntN(3) {
			c.cluster.RackOf = append(c.cluster.RackOf, rack)
		}
	}
	c.cluster.Nodes = len(c.cluster.RackOf)
	var counts []int32
	for node := range c.cluster.Nodes {
		c.cluster.NodeOf = append(c.cluster.NodeOf, int32(node))
		counts = append(counts, int32(r.IntN(6)))
		for range counts[node] {
			first := int32(r.IntN(1 + r.IntN(c.cluster.Nodes)))
			second := max(0, first-int32(r.IntN(2)))
			c.of = append(c.of, int32(len(c.holders)))
			c.holders = append(c.holders, []int32{first, second})
		}
	}
	c.strict, _ = assign.Contiguous(counts)
	return c
}

// Where places cannot tell ranks apart, an epoch is what meta.Cut says.
func TestEpochWithoutLocalityIsStrict(t *testing.T) {
	tests := []struct {
		name    string
		nodeOf  []int32
		rackOf  []int32
		holders []int32
	}{
		{"one node", []int32{0, 0, 0, 0}, nil, []int32{0}},
		{"nothing is known", []int32{0, 1, 2, 0}, []int32{0, 1, 1, 0}, nil},
		{"everything is everywhere", []int32{0, 1, 2, 0}, []int32{0, 1, 1, 0}, []int32{0, 1, 2, 3}},
		{"a node without ranks holds all, of one rack", []int32{0, 1, 2, 0}, []int32{5, 5, 5, 5}, []int32{3}},
		{"the same, of two racks", []int32{0, 1, 2, 0}, []int32{5, 5, 5, 6}, []int32{3}},
	}
	for _, tt := range tests {
		for _, cut := range []meta.Cut{{N: 30, Global: 4, Ranks: 4}, {N: 30, Global: 4, Ranks: 4, Tail: meta.TailPad}, {N: 30, Global: 3, Ranks: 4}, {N: 3, Global: 4, Ranks: 4}} {
			t.Run(fmt.Sprintf("%s, %+v", tt.name, cut), func(t *testing.T) {
				strict, err := assign.StrictSteps(cut, 0, cut.Steps())
				if err != nil {
					t.Fatal(err)
				}
				c := caseOf{assign.Cluster{Nodes: 4, NodeOf: tt.nodeOf, RackOf: tt.rackOf}, [][]int32{tt.holders}, make([]int32, strict.Len()), strict}
				plan := c.epoch(t)
				for rank := range cut.Ranks {
					var want []int32
					for step := range cut.Steps() {
						span := cut.Span(rank, step)
						for p := span.First; p < span.First+span.Count; p++ {
							want = append(want, int32(p))
						}
					}
					if got := plan.Of(int(rank)); !slices.Equal(got, want) {
						t.Errorf("rank %d reads %v, want %v", rank, got, want)
					}
				}
			})
		}
	}
}

// What is not local is served by holders, in the rack if there are any, and the
// busiest of them serves no more than has to be.
func TestServing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCase.Draw(t, "case")
		plan := c.epoch(t)
		for rank, reader := range c.cluster.NodeOf {
			for _, position := range plan.Of(rank) {
				checkServer(t, c, int(position), reader, plan.From[position])
			}
		}
		if plan.Most > 0 && canServe(c, plan.Division, int(plan.Most)-1) {
			t.Fatalf("%d is more than need be", plan.Most)
		}
	})
}

func checkServer(t fataler, c caseOf, position int, reader, from int32) {
	t.Helper()
	holders := c.holders[c.of[position]]
	switch distance := c.distance(position, int(reader)); {
	case len(holders) == 0:
		if from != -1 {
			t.Fatalf("position %d is served by %d, and held by no host", position, from)
		}
	case distance == 0:
		if from != reader {
			t.Fatalf("position %d is local to %d, and served by %d", position, reader, from)
		}
	case !slices.Contains(holders, from):
		t.Fatalf("position %d is served by %d, and held by %v", position, from, holders)
	case distance == 1 && c.cluster.RackOf[from] != c.cluster.RackOf[reader]:
		t.Fatalf("position %d is served by %d of another rack than %d", position, from, reader)
	}
}

// One node holds everything: what is read elsewhere all comes from it.
func TestOverload(t *testing.T) {
	c := caseOf{assign.Cluster{Nodes: 3, NodeOf: []int32{0, 1, 2}}, [][]int32{{0}, {0, 1}}, []int32{0, 0, 0, 0, 0, 0, 0, 1, 1}, contiguous(t, []int32{3, 3, 3})}
	if plan := c.epoch(t); plan.Most != 4 { // positions 7 and 8 are node 1's, four of the first seven are not local
		t.Errorf("the busiest serves %d, want 4; %v from %v", plan.Most, ranks(plan.Division), plan.From)
	}
}

func TestEpochDependsOnNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCase.Draw(t, "case")
		want := c.epoch(t)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		got := c.rename(r, r.Perm(c.cluster.Nodes)).epoch(t)
		if !equal(got.Division, want.Division) || got.Most != want.Most {
			t.Fatalf("other names of nodes: got %v, want %v", ranks(got.Division), ranks(want.Division))
		}
		// Who serves goes by the names of nodes, so these stay.
		same := make([]int, c.cluster.Nodes)
		for node := range same {
			same[node] = node
		}
		if got = c.rename(r, same).epoch(t); !equal(got.Division, want.Division) || !slices.Equal(got.From, want.From) {
			t.Fatalf("other names of sets: got %v, want %v", got, want)
		}
	})
}

// Larger, and with so few replicas that much is not local.
func TestLargeEpochCostsLeast(t *testing.T) {
	for replicas := 1; replicas <= 2; replicas++ {
		c := randomCase(20, 10, replicas, 3, 4)
		for node := range c.cluster.Nodes {
			c.cluster.RackOf = append(c.cluster.RackOf, int32(node/4))
		}
		for position := range c.of { // a third of the data is on one rack
			if position%3 == 0 {
				c.holders[position] = c.holders[position][:1]
				c.holders[position][0] %= 4
			}
		}
		plan := c.epoch(t)
		checkWhole(t, c, plan.Division)
		cost, local := c.cost(plan.Division)
		t.Logf("%d replicas: %d of %d local, cost %d", replicas, local, len(c.of), cost)
		if want := leastCost(c); cost != want {
			t.Errorf("%d replicas: costs %d, could cost %d", replicas, cost, want)
		}
	}
}

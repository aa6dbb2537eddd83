package assign_test

import (
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"

	"rankfs/meta/assign"
)

// A caseOf is everything that a division depends on, as a test sees it.
type caseOf struct {
	cluster assign.Cluster
	holders [][]int32 // the sets
	of      []int32
	strict  assign.Division
}

func (c caseOf) planner(t fataler) *assign.Planner {
	t.Helper()
	var sets assign.Sets
	for _, nodes := range c.holders {
		sets.Add(nodes...)
	}
	p, err := assign.New(c.cluster, &sets)
	if err != nil {
		t.Fatalf("planner: %v", err)
	}
	return p
}

func (c caseOf) step(t fataler) assign.Division {
	t.Helper()
	d, err := c.planner(t).Step(c.strict, c.of)
	if err != nil {
		t.Fatalf("step: %v", err)
	}
	return d
}

// A served is an epoch and who serves it.
type served struct {
	assign.Division
	From []int32 // the node that each position is read from
	Most int32   // of what the busiest serves to others
}

func (c caseOf) epoch(t fataler) served {
	t.Helper()
	p := c.planner(t)
	d, err := p.Epoch(c.strict, c.of)
	if err != nil {
		t.Fatalf("epoch: %v", err)
	}
	readers := c.readers(d)
	from, err := p.Serve(readers, c.of)
	if err != nil {
		t.Fatalf("serve: %v", err)
	}
	load := make([]int32, c.cluster.Nodes)
	for position, node := range from {
		if node >= 0 && node != readers[position] {
			load[node]++
		}
	}
	return served{d, from, slices.Max(load)}
}

// readers are the nodes that read each position.
func (c caseOf) readers(d assign.Division) []int32 {
	reader := make([]int32, len(c.of))
	for rank, node := range c.cluster.NodeOf {
		for _, position := range d.Of(rank) {
			reader[position] = node
		}
	}
	return reader
}

func (c caseOf) held(position, node int) bool {
	return slices.Contains(c.holders[c.of[position]], int32(node))
}

func (c caseOf) distance(position, node int) int {
	if c.held(position, node) {
		return 0
	}
	if racks := c.cluster.RackOf; racks != nil && racks[node] >= 0 {
		for _, holder := range c.holders[c.of[position]] {
			if racks[holder] == racks[node] {
				return 1
			}
		}
	}
	return 2
}

// cost is the sum of the distances, local the number of those that are 0.
func (c caseOf) cost(d assign.Division) (cost, local int) {
	for rank, node := range c.cluster.NodeOf {
		for _, position := range d.Of(rank) {
			distance := c.distance(int(position), int(node))
			if cost += distance; distance == 0 {
				local++
			}
		}
	}
	return cost, local
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// anyCase draws small cases: several ranks a node, nodes without ranks, sets
// that are empty, repeat nodes and each other, shares that are not even.
var anyCase = rapid.Custom(func(t *rapid.T) caseOf {
	var c caseOf
	c.cluster.Nodes = rapid.IntRange(1, 8).Draw(t, "nodes")
	node := rapid.Int32Range(0, int32(c.cluster.Nodes-1))
	ranks := rapid.IntRange(1, 10).Draw(t, "ranks")
	c.cluster.NodeOf = rapid.SliceOfN(node, ranks, ranks).Draw(t, "nodeOf")
	if rapid.Bool().Draw(t, "racks") {
		c.cluster.RackOf = rapid.SliceOfN(rapid.Int32Range(-1, 3), c.cluster.Nodes, c.cluster.Nodes).Draw(t, "rackOf")
	}
	most := rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(t, "replicas")
	c.holders = rapid.SliceOfN(rapid.SliceOfN(node, 0, most), 1, 12).Draw(t, "holders")
	var counts []int32
	positions := int32(0)
	for range ranks {
		counts = append(counts, rapid.Int32Range(0, 6).Draw(t, "share"))
		positions += counts[len(counts)-1]
	}
	c.of = rapid.SliceOfN(rapid.Int32Range(0, int32(len(c.holders)-1)), int(positions), int(positions)).Draw(t, "of")
	c.strict = contiguous(t, counts)
	return c
})

func contiguous(t fataler, counts []int32) assign.Division {
	t.Helper()
	d, err := assign.Contiguous(counts)
	if err != nil {
		t.Fatalf("shares: %v", err)
	}
	return d
}

// checkWhole checks that each position is in d once, in order within a rank,
// and that the shares are those of c.
func checkWhole(t fataler, c caseOf, d assign.Division) {
	t.Helper()
	if d.Ranks() != c.strict.Ranks() || d.Len() != len(c.of) {
		t.Fatalf("%d positions for %d ranks, want %d for %d", d.Len(), d.Ranks(), len(c.of), c.strict.Ranks())
	}
	seen := make([]bool, len(c.of))
	for rank := range d.Ranks() {
		list := d.Of(rank)
		if len(list) != len(c.strict.Of(rank)) {
			t.Fatalf("rank %d has %d positions, want %d", rank, len(list), len(c.strict.Of(rank)))
		}
		for i, position := range list {
			if seen[position] || i > 0 && list[i-1] >= position {
				t.Fatalf("rank %d reads %v: repeated or out of order", rank, list)
			}
			seen[position] = true
		}
	}
}

func equal(a, b assign.Division) bool {
	if a.Ranks() != b.Ranks() || a.Len() != b.Len() {
		return false
	}
	for rank := range a.Ranks() {
		if !slices.Equal(a.Of(rank), b.Of(rank)) {
			return false
		}
	}
	return true
}

func ranks(d assign.Division) (lists [][]int32) {
	for rank := range d.Ranks() {
		lists = append(lists, d.Of(rank))
	}
	return lists
}

// rename returns the same case in other words, with node n called nodes[n].
func (c caseOf) rename(r *rand.Rand, nodes []int) caseOf {
	sets := r.Perm(len(c.holders))
	name := func(node int32) int32 { return int32(nodes[node]) }
	renamed := caseOf{strict: c.strict, holders: make([][]int32, len(c.holders))}
	renamed.cluster.Nodes = c.cluster.Nodes
	for _, node := range c.cluster.NodeOf {
		renamed.cluster.NodeOf = append(renamed.cluster.NodeOf, name(node))
	}
	if c.cluster.RackOf != nil {
		renamed.cluster.RackOf = make([]int32, c.cluster.Nodes)
		for node, rack := range c.cluster.RackOf {
			renamed.cluster.RackOf[name(int32(node))] = max(-1, 7*rack)
		}
	}
	for set, holders := range c.holders {
		var other []int32
		for _, node := range holders {
			other = append(other, name(node))
			if r.IntN(4) == 0 {
				other = append(other, name(node))
			}
		}
		r.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		renamed.holders[sets[set]] = other
	}
	for _, set := range c.of {
		if renamed.of = append(renamed.of, int32(sets[set])); r.IntN(4) == 0 { // an equal set
			renamed.holders = append(renamed.holders, renamed.holders[sets[set]])
			renamed.of[len(renamed.of)-1] = int32(len(renamed.holders) - 1)
		}
	}
	return renamed
}

// another returns a case of the same cluster and sets with other positions.
func (c caseOf) another(t fataler, r *rand.Rand) caseOf {
	t.Helper()
	counts := make([]int32, c.strict.Ranks())
	c.of = nil
	for rank := range counts {
		counts[rank] = int32(r.IntN(40))
		for range counts[rank] {
			c.of = append(c.of, int32(r.IntN(len(c.holders))))
		}
	}
	c.strict = contiguous(t, counts)
	return c
}

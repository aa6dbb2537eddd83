package assign_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta/assign"
)

func TestReport(t *testing.T) {
	// Node 2 has no ranks, is in the rack of node 1, and holds the last three.
	c := caseOf{
		cluster: assign.Cluster{Nodes: 4, NodeOf: []int32{0, 1, 3}, RackOf: []int32{0, 1, 1, -1}},
		holders: [][]int32{{0}, {1}, {2}, {}},
		of:      []int32{1, 1, 0, 0, 3, 2},
		strict:  contiguous(t, []int32{2, 2, 2}),
	}
	sizes := []uint64{1, 2, 4, 8, 16, 32}
	p := c.planner(t)
	plan := c.epoch(t)
	got := p.Report(c.of, plan.Division, c.strict, func(position int) uint64 { return sizes[position] })
	want := assign.Report{
		Plan:   assign.Tally{Positions: [3]uint64{4, 0, 2}, Bytes: [3]uint64{15, 0, 48}, Ranks: 3, Most: 48},
		Strict: assign.Tally{Positions: [3]uint64{0, 0, 6}, Bytes: [3]uint64{0, 0, 63}, Ranks: 3, Most: 48},
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if b := got.Plan.Balance(); b != 48.0*3/63 {
		t.Errorf("balance %v", b)
	}
	if share := got.Plan.LocalShare(); share != 4.0/6 {
		t.Errorf("local share %v", share)
	}
	if empty := (assign.Tally{}); empty.Balance() != 1 || empty.LocalShare() != 1 {
		t.Error("nothing read is not even, or not local")
	}
}

// A report says what can be counted in the plan.
func TestReportCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCase.Draw(t, "case")
		plan := c.epoch(t)
		size := func(position int) uint64 { return uint64(7*position) % 5 }
		got := c.planner(t).Report(c.of, plan.Division, c.strict, size)
		want := assign.Report{Plan: c.tally(plan.Division, size), Strict: c.tally(c.strict, size)}
		if got != want {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// Many sets that differ in their racks alone are told apart.
func TestReportOfManySets(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	var c caseOf
	counts := make([]int32, 12)
	for rank := range counts { // node n has rank n, node n+12 is in its rack
		c.cluster.NodeOf = append(c.cluster.NodeOf, int32(rank))
		counts[rank] = 50
	}
	c.cluster.Nodes = 2 * len(counts)
	for node := range c.cluster.Nodes {
		c.cluster.RackOf = append(c.cluster.RackOf, int32(node%len(counts)))
	}
	for position := range 50 * len(counts) {
		var set []int32
		for node := range len(counts) {
			if r.IntN(2) == 0 {
				set = append(set, int32(len(counts)+node))
			}
		}
		c.holders, c.of = append(c.holders, set), append(c.of, int32(position))
	}
	c.strict = contiguous(t, counts)
	size := func(int) uint64 { return 1 }
	if got, want := c.planner(t).Report(c.of, c.strict, c.strict, size).Strict, c.tally(c.strict, size); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func (c caseOf) tally(d assign.Division, size func(int) uint64) assign.Tally {
	tally := assign.Tally{Ranks: uint64(d.Ranks())}
	for rank, node := range c.cluster.NodeOf {
		sum := uint64(0)
		for _, position := range d.Of(rank) {
			distance := c.distance(int(position), int(node))
			tally.Positions[distance]++
			tally.Bytes[distance] += size(int(position))
			sum += size(int(position))
		}
		tally.Most = max(tally.Most, sum)
	}
	return tally
}

package plan_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"rankfs/shuffle/plan"
)

// Each chunk has one owner, which is up and one of its holders if any is, whichever
// node is asked; and when a node goes, no chunk of another one changes hands.
func TestOwners(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var nodes []plan.Node
		up := make(map[string]plan.Node) // by host
		for i := range rapid.IntRange(2, 6).Draw(r, "nodes") {
			n := plan.Node{ID: fmt.Sprint("id", i), Host: string(rune('a' + i)), Up: rapid.Bool().Draw(r, "up") || i == 0}
			if nodes = append(nodes, n); n.Up {
				up[n.Host] = n
			}
		}
		holders := make([][]string, 20)
		for chunk := range holders {
			holders[chunk] = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "elsewhere"}), 0, 3).Draw(r, "holders")
		}
		seed := rapid.Uint64().Draw(r, "seed")
		owners := ownersOf(r, nodes, seed, holders)
		for chunk, id := range owners {
			local, held := false, false
			for _, host := range holders[chunk] {
				n, ok := up[host]
				held, local = held || ok, local || ok && n.ID == id
			}
			if held && !local {
				r.Errorf("chunk %d on %v is owned by %s", chunk, holders[chunk], id)
			}
		}
		gone := rapid.IntRange(1, len(nodes)-1).Draw(r, "gone")
		if nodes[gone].Up = false; len(up) < 2 {
			return
		}
		for chunk, id := range ownersOf(r, nodes, seed, holders) {
			if owners[chunk] != nodes[gone].ID && owners[chunk] != id {
				r.Errorf("chunk %d went from %s to %s as %s went", chunk, owners[chunk], id, nodes[gone].ID)
			}
		}
	})
}

// ownersOf are those of chunks, on which all nodes that are up must agree.
func ownersOf(r *rapid.T, nodes []plan.Node, seed uint64, holders [][]string) (owners []string) {
	for _, self := range nodes {
		if !self.Up {
			continue
		}
		o := plan.Owners{Self: self.ID}
		o.Follow(nodes)
		for chunk, hosts := range holders {
			id := o.Of(seed, chunk, hosts)
			if !o.Up(id) {
				r.Fatalf("chunk %d is owned by %q, which is not up", chunk, id)
			}
			if len(owners) == chunk {
				owners = append(owners, id)
			}
			if owners[chunk] != id {
				r.Errorf("chunk %d is owned by %s, or by %s as %s has it", chunk, owners[chunk], id, self.ID)
			}
		}
	}
	return owners
}

// Nodes that are drained own nothing while others are up, and everything where
// none is.
func TestDrainedNodesOwnNothing(t *testing.T) {
	nodes := []plan.Node{{ID: "1", Host: "a", Up: true, Drained: true}, {ID: "2", Host: "b", Up: true}}
	o := plan.Owners{Self: "1"}
	for _, drained := range []bool{false, true} {
		nodes[1].Drained = drained
		o.Follow(nodes)
		_, owns := o.At("a")
		if _, has := o.Host("1"); owns != drained || has != drained || !o.Up("1") {
			t.Errorf("with all drained %v: node 1 owns chunks: %v, %v", drained, owns, has)
		}
		if want := map[bool]int{false: 1, true: 2}[drained]; o.Count() != want {
			t.Errorf("%d nodes fetch chunks, want %d", o.Count(), want)
		}
	}
}

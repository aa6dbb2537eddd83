package placement_test

import (
	"fmt"
	"testing"

	"rankfs/shuffle/placement"
)

// Nodes that write as many maps each are given as many copies each, whenever each has written
// one more, however few these are, and in as many racks as there are.
func TestCopiesInTurn(t *testing.T) {
	for _, tt := range []struct{ n, racks int }{{2, 1}, {3, 1}, {4, 1}, {7, 1}, {4, 2}, {6, 3}, {6, 2}, {4, 4}} {
		n := tt.n
		most := min(3, n)
		if tt.racks > 1 {
			most = min(most, tt.racks)
		}
		for copies := 2; copies <= most; copies++ {
			for circle := range uint64(20) {
				nodes := alike(n)
				for i := range nodes {
					nodes[i].Rack = fmt.Sprint("/", i*tt.racks/n)
				}
				given, has := make(map[string]map[string]int), make(map[string]int)
				for round := 1; round <= 2*n; round++ {
					for _, writer := range nodes {
						if given[writer.ID] == nil {
							given[writer.ID] = make(map[string]int)
						}
						chosen := placement.InTurn(circle, copies, writer.ID, given[writer.ID], nodes)
						if len(chosen) != copies || chosen[0] != writer.ID {
							t.Fatalf("%d copies of what %s of %d nodes writes are on %v", copies, writer.ID, n, chosen)
						}
						for _, id := range chosen {
							has[id]++
							given[writer.ID][id]++
						}
					}
					for id, got := range has {
						if got != round*copies {
							t.Fatalf("%d copies by %d nodes in %d racks in circle %d, round %d: node %s has %d, want %d", copies, n, tt.racks, circle, round, id, got, round*copies)
						}
					}
				}
			}
		}
	}
}

// alike are nodes of about the same room, whose racks are not known.
func alike(n int) []placement.Node {
	nodes := site(n)
	for i := range nodes {
		nodes[i].Rack = ""
		nodes[i].Room += int64(i) << 20
	}
	return nodes
}

// A node that has room for twice as much is given twice as much, and one that has hardly any
// next to nothing.
func TestTurnsByRoom(t *testing.T) {
	nodes := alike(4)
	nodes[1].Room *= 2
	nodes[2].Room = 1
	given := make(map[string]int)
	for range 300 {
		for _, id := range placement.InTurn(7, 2, nodes[0].ID, given, nodes) {
			given[id]++
		}
	}
	if large, like := given[nodes[1].ID], given[nodes[3].ID]; large < 195 || large > 205 || like < 95 || like > 105 {
		t.Errorf("of 300 copies nodes of 2 GiB, no room and 1 GiB have %d, %d and %d", large, given[nodes[2].ID], like)
	}
}

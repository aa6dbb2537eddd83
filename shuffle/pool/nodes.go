package pool

import (
	"slices"

	"rankfs/meta/state"
	"rankfs/shuffle/placement"
)

// NodesUp are the nodes that are up, as placement knows them. One has room that has said so,
// unless it is full or drained. Of self, which is empty on a guest, what is written there is
// kept whatever it has said.
func NodesUp(nodes []state.Node, self string) (all []placement.Node) {
	for _, n := range nodes {
		room := n.Pool
		switch {
		case n.Drained, n.PoolFull && n.ID != self:
			room = 0
		case n.ID == self:
			room = max(1, room)
		}
		if n.Up {
			all = append(all, placement.Node{ID: n.ID, Host: n.Host, Room: room, Leaves: n.Drained})
		}
	}
	return all
}

// Hosts is the number of hosts that may ever have a copy: those that have something for the pool, also
// while they are full or down.
func Hosts(nodes []state.Node) int {
	all := make(map[string]bool)
	for _, n := range nodes {
		if n.Pool > 0 && !n.Drained {
			all[n.Host] = true
		}
	}
	return len(all)
}

// up are the nodes that are.
func up(nodes []placement.Node) map[string]bool {
	all := make(map[string]bool)
	for _, n := range nodes {
		all[n.ID] = true
	}
	return all
}

// activeNodes are the nodes that are up, and are not drained.
func activeNodes(nodes []placement.Node) map[string]bool {
	return up(slices.DeleteFunc(slices.Clone(nodes), func(n placement.Node) bool { return n.Leaves }))
}

// those are the nodes of a list that are in a set.
func those(ids []string, in map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !in[id] })
}

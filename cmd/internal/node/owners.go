package node

import (
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// ownersOf is what of the cluster's nodes decides who owns chunks.
func ownersOf(nodes []state.Node) (all []plan.Node) {
	for _, n := range nodes {
		all = append(all, plan.Node{ID: n.ID, Host: n.Host, Up: n.Up, Drained: n.Drained})
	}
	return all
}

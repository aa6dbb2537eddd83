package views

import (
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// WouldBe says where the ranks of a view would be, if they were settled now: where they
// were opened last, and the others in blocks on the nodes that are up, as mpirun places
// them.
func (vs *Views) WouldBe(v meta.View) state.Runs {
	var up []string
	for _, m := range vs.config.State.Nodes() {
		if m.Up && !m.Drained {
			up = append(up, m.ID)
		}
	}
	if len(up) == 0 {
		up = []string{vs.config.Cluster.Self()}
	}
	nodes := vs.config.State.Claims(v.Dataset, v.Ranks).Nodes()
	if len(nodes) == 0 {
		nodes = make([]string, v.Ranks)
	}
	for rank, node := range nodes {
		if m, ok := vs.config.State.Node(node); !ok || !m.Up {
			nodes[rank] = up[uint64(rank)*uint64(len(up))/v.Ranks]
		}
	}
	return state.RunsOf(nodes)
}

// Seats are the hosts of nodes.
func (vs *Views) Seats(runs state.Runs) []plan.Seat {
	var seats []plan.Seat
	for _, run := range runs {
		seats = append(seats, plan.Seat{Host: vs.config.State.HostOf(run.Node), Ranks: run.Count})
	}
	return seats
}

// allUp reports whether each rank is claimed by a node that is up.
func (vs *Views) allUp(claims state.Runs) bool {
	for _, run := range claims {
		if m, ok := vs.config.State.Node(run.Node); !ok || !m.Up {
			return false
		}
	}
	return len(claims) > 0
}

package views

import (
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// Ranks says on which nodes the ranks of a view are, or would be. It may be used concurrently: its
// fields never change, and what it reads of the cluster's state the machine has a lock for.
type Ranks struct {
	state *state.Machine
	self  string // the id of this node
	host  string // and its host
}

// WouldBe says where the ranks of a view would be, if they were settled now: where they
// were opened last, and the others in blocks on the nodes that are up, as mpirun places
// them.
func (r *Ranks) WouldBe(v meta.View) state.Runs {
	up := r.up()
	if len(up) == 0 {
		up = []string{r.self}
	}
	nodes := r.state.Claims(v.Dataset, v.Ranks).Nodes()
	if len(nodes) == 0 {
		nodes = make([]string, v.Ranks)
	}
	for rank, node := range nodes {
		if m, ok := r.state.Node(node); !ok || !m.Up {
			nodes[rank] = up[uint64(rank)*uint64(len(up))/v.Ranks]
		}
	}
	return state.RunsOf(nodes)
}

// up are the nodes that take ranks.
func (r *Ranks) up() (nodes []string) {
	for _, m := range r.state.Nodes() {
		if m.Up && !m.Drained {
			nodes = append(nodes, m.ID)
		}
	}
	return nodes
}

// Seats are the hosts of nodes.
func (r *Ranks) Seats(runs state.Runs) []plan.Seat {
	var seats []plan.Seat
	for _, run := range runs {
		seats = append(seats, plan.Seat{Host: r.state.HostOf(run.Node), Ranks: run.Count})
	}
	return seats
}

// allUp reports whether each rank is claimed by a node that is up.
func (r *Ranks) allUp(claims state.Runs) bool {
	for _, run := range claims {
		if m, ok := r.state.Node(run.Node); !ok || !m.Up {
			return false
		}
	}
	return len(claims) > 0
}

// ofANode is how many of so many ranks a node has, if they are spread evenly over the nodes.
func (r *Ranks) ofANode(ranks uint64) uint64 {
	nodes := uint64(max(len(r.up()), 1))
	return (ranks + nodes - 1) / nodes
}

// here is the number of ranks of a view on this node, as they have said or as they would
// be.
func (r *Ranks) here(v meta.View) (n uint64) {
	for _, seat := range r.Seats(r.WouldBe(v)) {
		if meta.SameHost(seat.Host, r.host) {
			n += seat.Ranks
		}
	}
	return n
}

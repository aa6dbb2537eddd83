package group

import (
	"slices"

	"rankfs/meta/state"
)

// A Status is the cluster as a node sees it.
type Status struct {
	Cluster string   `json:"cluster"`
	Leader  string   `json:"leader,omitempty"` // none if no majority is up
	Term    uint64   `json:"term"`
	Removed bool     `json:"removed,omitempty"` // this node was taken out of the cluster
	Applied uint64   `json:"applied"`
	Members []Member `json:"members"`
}

// A Member is a node as this one sees it.
type Member struct {
	state.Node
	Voter bool    `json:"voter"`
	Lag   *uint64 `json:"lag,omitempty"` // commands behind the leader, where the leader is asked of another
}

// Status is the cluster as this node sees it.
func (g *Group) Status() Status {
	m, r := g.config.Machine, g.replica
	s := Status{
		Cluster: m.Summary().Cluster.ID, Leader: r.Leader(), Term: r.raft.CurrentTerm(),
		Applied: r.raft.AppliedIndex(), Removed: g.Removed(),
	}
	voters := r.voters()
	for _, n := range m.Nodes() {
		member := Member{Node: n, Voter: slices.Contains(voters, n.ID)}
		if applied := g.duties.seen.applied(n.ID); r.Leads() && applied > 0 && n.ID != g.config.Self.ID {
			lag := max(s.Applied, applied) - applied
			member.Lag = &lag
		}
		s.Members = append(s.Members, member)
	}
	return s
}

// Unwritten is why the log cannot be written on this node, so that it agrees on nothing
// new; nil if it can.
func (g *Group) Unwritten() error { return g.replica.store.log.unwritten() }

package admin

import (
	"context"
	"errors"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// CallSummary asks a node for its status in short, by the name that earlier releases know.
const CallSummary = "/glance"

// summaryTime bounds a look at all nodes.
const summaryTime = 3 * time.Second

// summaries gives the status of this node in short, and asks all nodes for theirs.
type summaries struct {
	here    *status
	members *membership
	cluster interface { // asks a node, which may be this one
		Ask(ctx context.Context, id, name string, request, result any) error
	}
}

// Summary is this node's status in short.
func (n *summaries) Summary() control.NodeSummary {
	s := n.here.status()
	return control.NodeSummary{Version: s.Version, Readers: s.Counters.Readers, Plans: &s.Cluster.Plans, Term: &s.Cluster.Term,
		Tiers: s.Tiers, Faults: s.Faults}
}

// All asks all nodes of the cluster that are up for their status, and waits for them no
// longer than summaryTime.
func (n *summaries) All(ctx context.Context) []control.NodeStatus {
	ctx, cancel := context.WithTimeout(ctx, summaryTime)
	defer cancel()
	k := n.members.Cluster()
	all := make([]control.NodeStatus, len(k.Nodes))
	atOnce(len(all), func(i int) {
		m := k.Nodes[i]
		all[i].Member = m
		if m.State == "down" {
			all[i].Error = "it does not answer"
			return
		}
		var g control.NodeSummary
		switch err := n.cluster.Ask(ctx, m.ID, CallSummary, struct{}{}, &g); {
		case errors.Is(err, meta.ErrNotExist):
			all[i].Error = "it is of a release that does not say"
		case err != nil:
			all[i].Error = err.Error()
		default:
			all[i].NodeSummary = &g
		}
	})
	return all
}

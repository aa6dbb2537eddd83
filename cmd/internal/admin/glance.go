package admin

import (
	"context"
	"errors"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// CallGlance asks a node for its status in short.
const CallGlance = "/glance"

// glanceTime bounds a look at all nodes.
const glanceTime = 3 * time.Second

// Glance is this node's status in short.
func (n *status) Glance() control.Glance {
	s := n.status()
	return control.Glance{Version: s.Version, Readers: s.Counters.Readers, Tiers: s.Tiers, Faults: s.Faults}
}

// All asks all nodes of the cluster that are up for their status, and waits for them no
// longer than glanceTime.
func (n *status) All(ctx context.Context) []control.NodeStatus {
	ctx, cancel := context.WithTimeout(ctx, glanceTime)
	defer cancel()
	k := n.all.Cluster()
	all := make([]control.NodeStatus, len(k.Nodes))
	atOnce(len(all), func(i int) {
		m := k.Nodes[i]
		all[i].Member = m
		if m.State == "down" {
			all[i].Error = "it does not answer"
			return
		}
		var g control.Glance
		switch err := n.Group.Ask(ctx, m.ID, CallGlance, struct{}{}, &g); {
		case errors.Is(err, meta.ErrNotExist):
			all[i].Error = "it is of a release that does not say"
		case err != nil:
			all[i].Error = err.Error()
		default:
			all[i].Glance = &g
		}
	})
	return all
}

package group

import "context"

// A revocation ends the connections with nodes that were removed.
type revocation struct{ config *Config }

// run does so as soon as this node knows that they were.
func (r revocation) run(ctx context.Context) {
	known := make(map[string]bool)
	for {
		changed, now := r.config.Machine.ClusterChanged(), make(map[string]bool)
		for _, n := range r.config.Machine.Nodes() {
			now[n.ID] = true
		}
		for id := range known {
			if !now[id] && r.config.Machine.Removed(id) {
				r.config.Port.Revoke(id)
			}
		}
		known = now
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

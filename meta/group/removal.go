package group

import (
	"context"

	"rankfs/meta/trust"
)

// A removal has this node leave a cluster that has removed it.
type removal struct {
	config   *Config
	standing *standing
	replica  *replica
	keys     *keys
}

// await has this node leave when it learns that it was removed, from its own copy of the
// state or from one that does not let it in.
func (r *removal) await(ctx context.Context) {
	for {
		changed := r.config.Machine.ClusterChanged()
		if r.config.Machine.Removed(r.config.Self.ID) {
			r.standing.dialled(trust.ErrRemoved)
		}
		select {
		case <-r.standing.removed:
			r.leave()
			return
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// leave ends the part of a removed node in its cluster: it logs that, asks for no vote
// any more, and forgets what only voters may know. It goes on serving what it has.
func (r *removal) leave() {
	r.config.Log.Error("this node serves what it has and learns nothing new", "cause", trust.ErrRemoved)
	r.replica.endRaft()
	if err := r.keys.forget(); err != nil {
		r.config.Log.Error("the authority's key is still on this node", "cause", err)
	}
}

package group

import (
	"context"
	"fmt"

	"rankfs/meta"
	"rankfs/meta/state"
)

// goOver has the cluster take commands of the newest version that all its nodes
// understand, as they say themselves. A node that is away may be of an older
// release, and is waited for: until it is back, or removed, the cluster goes on
// as it is.
func (g *Group) goOver(ctx context.Context) {
	m := g.config.Machine
	now, to := m.Version(), m.Speaks()
	if now >= to || m.Summary().Cluster == (state.Cluster{}) {
		return
	}
	nodes := g.ids()
	for _, id := range nodes {
		speaks, known := g.seen.speaks(id)
		var why error
		switch {
		case !known:
			why = fmt.Errorf("node %s %w: which release it has is not known; start it, or remove it", id, meta.ErrUnavailable)
		case speaks <= now:
			why = fmt.Errorf("node %s is of an older release; upgrade it", id)
		}
		if why != nil {
			g.waits.Store(&why)
			g.told(fmt.Sprintf("the cluster does not take commands of version %d", to), "", why)
			return
		}
		to = min(to, speaks)
	}
	g.waits.Store(nil)
	ctx, cancel := context.WithTimeout(ctx, g.times.patience)
	defer cancel()
	_, err := g.apply(ctx, g.itself(), &state.Upgrade{To: to, Nodes: nodes})
	if g.told(fmt.Sprintf("the cluster does not take commands of version %d", to), "", err) {
		g.config.Log.Info("all nodes are of this release: the cluster takes commands of its version from now on; "+
			"tokens made before let nobody in any more, and all nodes there are are operators", "version", to)
	}
}

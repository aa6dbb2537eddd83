package group

import (
	"context"
	"fmt"

	"rankfs/meta"
	"rankfs/meta/state"
)

// An upgrade takes the cluster from the commands of one release to those of
// the next: once, when all of its nodes have said that they understand them.
type upgrade struct {
	config   *Config
	seen     *liveness
	executor *executor
	warnings *warnings
}

// goOver has the cluster take commands of the newest version that all its nodes
// understand, as they say themselves. A node that is away may be of an older
// release, and is waited for: until it is back, or removed, the cluster goes on
// as it is.
func (u *upgrade) goOver(ctx context.Context) {
	m := u.config.Machine
	now, to := m.Version(), m.Speaks()
	if now >= to || m.Summary().Cluster == (state.Cluster{}) {
		return
	}
	nodes := u.config.ids()
	for _, id := range nodes {
		speaks, known := u.seen.speaks(id)
		var why error
		switch {
		case !known:
			why = fmt.Errorf("node %s %w: which release it has is not known; start it, or remove it", id, meta.ErrUnavailable)
		case speaks <= now:
			why = fmt.Errorf("node %s is of an older release; upgrade it", id)
		}
		if why != nil {
			u.warnings.told(notYet(to), "", why)
			return
		}
		to = min(to, speaks)
	}
	ctx, cancel := context.WithTimeout(ctx, u.config.times.patience)
	defer cancel()
	_, err := u.executor.apply(ctx, u.config.itself(), &state.Upgrade{To: to, Nodes: nodes})
	if u.warnings.told(notYet(to), "", err) {
		u.config.Log.Info("all nodes are of this release: the cluster takes commands of its version from now on; "+
			"tokens made before let no node in any more, and all nodes there are are operators", "version", to)
	}
}

func notYet(version int) string {
	return fmt.Sprintf("the cluster does not take commands of version %d", version)
}

package group

import (
	"context"
	"fmt"
	"strings"

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
	c := &state.Upgrade{To: to, Nodes: nodes}
	_, err := u.executor.apply(ctx, u.config.itself(), c)
	if u.warnings.told(notYet(to), "", err) {
		u.config.Log.Info(wentOver(c.Tells(now)), "version", to)
	}
}

// wentOver says that the cluster has gone over, and what operators have to know of that.
func wentOver(tells []string) string {
	const what = "all nodes are of this release: the cluster takes commands of its version from now on"
	return strings.Join(append([]string{what}, tells...), "; ")
}

func notYet(version int) string {
	return fmt.Sprintf("the cluster does not take commands of version %d", version)
}

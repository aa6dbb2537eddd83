package pool

import (
	"context"
	"errors"
	"slices"

	"rankfs/meta"
	"rankfs/meta/state"
)

// losses are copies that this node should have and has not: what it had in memory, which
// does not outlive a host, or what is damaged. A reader of a copy meets its loss, and so do
// the inspection of what an earlier daemon left, and a sweep. The first of them tells the
// cluster; the others find that it knows.
type losses struct {
	*agreed
	telling chan struct{} // of size 1: held while one loss is told
}

func newLosses(a *agreed) *losses { return &losses{a, make(chan struct{}, 1)} }

// tell tells the cluster of the loss of a copy. Before, unless it is known by now, is looks
// again: the copy may have come anew.
func (l *losses) tell(ctx context.Context, j state.PoolJob, g state.PoolStage, c state.Commit, is func() (lost bool)) error {
	select {
	case l.telling <- struct{}{}:
		defer func() { <-l.telling }()
	case <-ctx.Done():
		return cause(ctx)
	}
	self := l.config.Cluster.Self()
	now, ok := l.config.State.Commit(g.Number, c.Map)
	if !ok || now.Sum != c.Sum || !slices.Contains(now.Nodes, self) || !is() {
		return nil
	}
	_, err := l.agree(context.WithoutCancel(ctx), &state.KeepCopy{StageName: nameOf(j, g), Node: self, Map: c.Map, Sum: c.Sum})
	if err != nil && !errors.Is(err, meta.ErrNotExist) && !errors.Is(err, meta.ErrOvertaken) {
		l.config.Log.Warn("the cluster does not know yet that a map is lost", "cause", err) // sweep says it again
		return err
	}
	return nil
}

// missing says to a person that a copy is not here.
func (l *losses) missing(j state.PoolJob, g state.PoolStage, c state.Commit) {
	l.config.Log.Warn("a map of the shuffle pool is lost on this node", "job", j.Name, "stage", g.Name, "map", c.Map)
}

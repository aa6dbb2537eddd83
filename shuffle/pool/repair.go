package pool

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/placement"
)

// A repairer makes copies of maps that have too few.
type repairer struct {
	*copies
	peers peers
}

// repair gives maps of which too few nodes that are up and stay have a copy another one: each
// node those of which it has the first such copy, or if there is none the first that is up;
// the most endangered first.
//
// A node that did not take a copy is not asked again in this round, as it may take long to
// say so. When other nodes are up, other maps may be the most endangered: a round ends.
func (r repairer) repair(ctx context.Context) (again bool) {
	nodes := r.config.Nodes()
	up, active := up(nodes), activeNodes(nodes)
	var all []endangered
	for _, j := range r.config.State.PoolJobs() {
		for _, g := range r.config.State.Stages(j.Number) {
			for _, c := range r.config.State.Commits(g.Number).All() {
				if count(c.Nodes, active) >= g.Spec.Copies {
					continue
				}
				live := those(c.Nodes, active)
				from := append(slices.Clone(live), those(c.Nodes, up)...)
				if len(from) > 0 && from[0] == r.config.Cluster.Self() {
					all = append(all, endangered{j, g, c, live})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b endangered) int { return len(a.live) - len(b.live) })
	failed := make(map[string]bool)
	for _, e := range all {
		if !maps.Equal(active, activeNodes(r.config.Nodes())) {
			return true
		}
		r.repairOne(ctx, e, nodes, failed)
	}
	return len(failed) > 0
}

// An endangered map has fewer copies on nodes that are up and stay than its stage wants.
type endangered struct {
	job   state.PoolJob
	stage state.PoolStage
	is    state.Commit
	live  []string
}

func (r repairer) repairOne(ctx context.Context, e endangered, nodes []placement.Node, failed map[string]bool) {
	f, err := r.files(e.job)
	if err != nil {
		return
	}
	missing := e.stage.Spec.Copies - len(e.live)
	key := placement.Key(e.job.Name, e.stage.Name, e.is.Map)
	for _, id := range placement.More(key, e.live, nodes) {
		if missing == 0 || ctx.Err() != nil {
			return
		}
		if failed[id] || slices.Contains(e.is.Nodes, id) {
			continue
		}
		took, err := r.copyAgain(ctx, f, id, e)
		switch {
		case err == nil:
			missing--
			sleep(ctx, took) // others have the link half of the time
		case errors.Is(err, meta.ErrOvertaken), errors.Is(err, meta.ErrNotExist), errors.Is(err, meta.ErrStale):
			return // it is another map, or none, by now
		default:
			err = r.suspect(ctx, f, e.stage.Number, e.is, err)
			failed[id] = true
			r.config.Log.Warn("a map of the shuffle pool has too few copies still", "job", e.job.Name, "stage", e.stage.Name,
				"map", e.is.Map, "node", id, "cause", err)
		}
	}
}

// copyAgain sends a copy of a map that is committed, and says how long that took once the node
// has let it come.
func (r repairer) copyAgain(ctx context.Context, f *files, node string, e endangered) (took time.Duration, err error) {
	name := mapPath(e.stage.Number, e.is)
	m, err := f.open.get(name, e.is.Size, f.openMap)
	if err != nil {
		return 0, err
	}
	defer f.open.give(m)
	t, err := f.check(m, name, e.is)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	err = r.peers.sendCopy(ctx, node, e.stage, e.is, sent{table: t, bytes: m, agreed: true, begins: func() { begun = time.Now() }})
	return time.Since(begun), err
}

package pool

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/gathering"
	"rankfs/shuffle/pieces"
	"rankfs/shuffle/placement"
)

// A repairer makes copies of maps that have too few.
type repairer struct {
	*copies
	peers peers
	told  map[string]refused // by node: what the log has said last
}

// A refused map is one of which a node did not take a copy.
type refused struct{ stage, number uint64 }

// repair makes one more copy of each map that has too few on nodes that are up and stay. The node
// that has the first of these copies makes it, or where there is none the first node with a copy
// that is up; the most endangered maps come first. Of a map with too many copies the node that
// has the last gives up its own.
//
// A node that did not take a copy is not asked again in this round, as it may take long to
// say so; one that has no room for it is asked for smaller ones. When other nodes are up, other
// maps may be the most endangered: a round ends.
func (r repairer) repair(ctx context.Context) (again bool) {
	nodes := r.config.Nodes()
	up, active := up(nodes), activeNodes(nodes)
	var all, spare []endangered
	for _, j := range r.config.State.PoolJobs() {
		for _, g := range r.config.State.Stages(j.Number) {
			for _, c := range r.config.State.Commits(g.Number).All() {
				n := c.CopiesOn(active)
				if n == g.Spec.Copies {
					continue
				}
				live := those(c.Nodes, active)
				if n > g.Spec.Copies {
					if live[n-1] == r.config.Cluster.Self() { // the last that was made
						spare = append(spare, endangered{j, g, c, live})
					}
					continue
				}
				from := append(slices.Clone(live), those(c.Nodes, up)...)
				if len(from) > 0 && from[0] == r.config.Cluster.Self() {
					all = append(all, endangered{j, g, c, live})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b endangered) int { return len(a.live) - len(b.live) })
	failed := make(map[string]int64) // nodes, and the size from which on they took no map
	for _, e := range all {
		if !maps.Equal(active, activeNodes(r.config.Nodes())) {
			return true
		}
		r.repairOne(ctx, e, nodes, failed)
	}
	again = len(failed) > 0
	for _, e := range spare {
		if ctx.Err() != nil || !maps.Equal(active, activeNodes(r.config.Nodes())) {
			return true
		}
		again = !r.giveUp(ctx, e) || again
	}
	return again
}

// giveUp gives up a copy of this node that is one too many, as that of a node that was away is
// when it is back: once the others have looked that theirs are right, and the cluster has agreed
// that they are enough. Its file goes with all that is needed no more.
func (r repairer) giveUp(ctx context.Context, e endangered) (done bool) {
	self := r.config.Cluster.Self()
	ask := gathering.Request{Terms: gathering.TermsOf(e.stage), Whole: true, Maps: []state.Commit{e.is}}
	for _, id := range e.live[:len(e.live)-1] {
		if err := r.peers.lookAt(ctx, id, ask); err != nil {
			return false // that node tells of its loss, or it is slow
		}
	}
	_, err := r.agree(ctx, &state.KeepCopy{StageName: nameOf(e.job, e.stage), Node: self, Map: e.is.Map, Sum: e.is.Sum, Spare: true})
	return err == nil
}

// An endangered map has fewer copies on nodes that are up and stay than its stage wants.
type endangered struct {
	job   state.PoolJob
	stage state.PoolStage
	is    state.Commit
	live  []string
}

func (r repairer) repairOne(ctx context.Context, e endangered, nodes []placement.Node, failed map[string]int64) {
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
		if least, ok := failed[id]; ok && e.is.Size >= least || slices.Contains(e.is.Nodes, id) {
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
			if _, again := failed[id]; !again {
				r.tell(id, e, err)
			}
			failed[id] = 0
			if errors.Is(err, meta.ErrNoSpace) {
				failed[id] = e.is.Size
			}
		}
	}
}

// tell logs that a node did not take a copy, and not once more in each round.
func (r repairer) tell(node string, e endangered, cause error) {
	is := refused{e.stage.Number, e.is.Map}
	if r.told[node] == is {
		return
	}
	r.told[node] = is
	r.config.Log.Warn("a map of the shuffle pool has too few copies still", "job", e.job.Name, "stage", e.stage.Name,
		"map", e.is.Map, "node", node, "cause", cause)
}

// copyAgain sends a copy of a map that is committed, and says how long that took once the node
// has let it come.
func (r repairer) copyAgain(ctx context.Context, f *files, node string, e endangered) (took time.Duration, err error) {
	var begun time.Time
	err = f.maps.Use(e.stage.Number, e.is, func(t pieces.Table, m io.ReaderAt) error {
		begun = time.Now()
		return r.peers.sendCopy(ctx, node, e.stage, e.is, sent{table: t, bytes: m, agreed: true, begins: func() { begun = time.Now() }})
	})
	if begun.IsZero() {
		return 0, err
	}
	return time.Since(begun), err
}

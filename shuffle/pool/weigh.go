package pool

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"rankfs/meta/state"
)

// What parts weigh, before or after they are made, is in the tables of the maps. Nodes add
// up those of which they have copies, and send a number for each part.

// Bounds of what is looked at for that, as a person waits for it.
const (
	maxRows   = 1 << 22 // of all tables: 64 MiB
	weighTime = 2 * time.Second
)

// Weigh finds out how many bytes each part has.
func (g *Stage) Weigh(ctx context.Context, r *Report) {
	var commits []state.Commit
	for _, c := range g.job.pool.config.State.Commits(g.number).All() {
		if len(c.Nodes) > 0 {
			commits = append(commits, c)
		}
	}
	switch parts := r.Stage.Spec.Parts; {
	case len(commits) == 0:
		return
	case r.Stage.Spec.Records.Ranges:
		r.unweighed = "with by=range that is known once they are made"
		return
	case uint64(len(commits))*parts > maxRows:
		r.unweighed = fmt.Sprintf("%d maps of %d parts are too many to add up", len(commits), parts)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, weighTime)
	defer cancel()
	parts, err := g.weigh(ctx, r.Stage, commits)
	if err != nil {
		r.unweighed = strings.Join(strings.Fields(err.Error()), " ")
		return
	}
	r.Parts = parts
}

func (g *Stage) weigh(ctx context.Context, is state.PoolStage, commits []state.Commit) ([]int64, error) {
	f, err := g.job.files()
	if err != nil {
		return nil, err
	}
	p := &Part{Stage: g.number, Generation: is.Generation, Whole: true, Maps: state.MapsOf(commits...), pool: g.job.pool, files: f}
	all := make([]int64, is.Spec.Parts)
	var mu sync.Mutex
	return all, p.each(ctx, p.every(), func(node string, maps []int) (err error) {
		some := make([]int64, len(all))
		if p.own(node) {
			err = p.pool.copies.weigh(ctx, f, p.request(maps), some)
		} else {
			err = p.pool.peers.weighAt(ctx, node, p.request(maps), some)
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for i, n := range some {
			all[i] += n
		}
		return nil
	})
}

// State is what a person wants to know of it.
func (g *Stage) State(ctx context.Context) ([]byte, error) {
	if err := g.job.pool.Know(ctx); err != nil {
		return nil, err
	}
	r, err := g.Report()
	if err != nil {
		return nil, err
	}
	g.Weigh(ctx, &r)
	return []byte(r.String()), nil
}

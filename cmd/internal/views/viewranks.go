package views

import (
	"context"
	"fmt"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
)

// viewRanks tell the cluster on which node each rank of one view is opened, and have it
// settle where they all are. They may be used concurrently. mu guards the fields of what was
// told, and is not held during a call to the cluster.
type viewRanks struct {
	views      *Views
	view       meta.View
	key        string
	generation uint64 // of the dataset

	mu struct {
		sync.Mutex
		told map[uint64]bool // by claimLater, or the cluster knew
	}
}

// claim says that a rank is on this node, unless the cluster knows.
func (r *viewRanks) claim(ctx context.Context, rank uint64) error {
	self := r.views.config.Cluster.Self()
	if r.claimant(rank) == self {
		return nil
	}
	_, err := r.views.config.Cluster.Do(ctx, &state.Claim{
		Dataset: r.view.Dataset, Generation: r.generation, Ranks: r.view.Ranks, Rank: rank, Node: self,
	})
	return err
}

// claimant is the node that a rank was opened on last; empty if on none.
func (r *viewRanks) claimant(rank uint64) string {
	for _, run := range r.views.config.State.Claims(r.view.Dataset, r.view.Ranks) {
		if rank < run.Count {
			return run.Node
		}
		rank -= run.Count
	}
	return ""
}

// claimLater has the cluster told, once, that a rank of a settled view is on this node:
// it may have been planned elsewhere, and the plans of later epochs should know. The
// open does not wait for it.
func (r *viewRanks) claimLater(rank uint64) {
	if r.wasTold(rank) || r.claimant(rank) == r.views.config.Cluster.Self() {
		return
	}
	r.views.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(r.views.ctx, 10*time.Second)
		defer cancel()
		if err := r.claim(ctx, rank); err != nil {
			r.views.config.Log.Debug("rank not claimed", "view", r.key, "rank", rank, "cause", err)
		}
	})
}

// wasTold reports whether it was called for a rank before.
func (r *viewRanks) wasTold(rank uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.told == nil {
		r.mu.told = make(map[uint64]bool)
	}
	told := r.mu.told[rank]
	r.mu.told[rank] = true
	return told
}

// How long ranks that start together may differ in time, and how long the first of them
// waits at most for the last.
const (
	quietTime  = 300 * time.Millisecond
	gatherTime = 3 * time.Second
)

// settle finds what the cluster settled for the view, or has it settle where the ranks are.
func (r *viewRanks) settle(ctx context.Context) (state.SettledPlan, error) {
	if p, ok := r.views.config.State.SettledPlan(r.key); ok {
		return p, nil
	}
	if err := r.gather(ctx); err != nil {
		return state.SettledPlan{}, err
	}
	result, err := r.views.config.Cluster.Do(ctx, &state.Settle{View: r.key, Generation: r.generation, Nodes: r.views.Ranks.WouldBe(r.view)})
	if err != nil {
		return state.SettledPlan{}, err
	}
	plan := *result.Plan()
	r.views.config.Log.Info("plan settled", "view", r.key, "ranks", r.view.Ranks, "nodes", len(plan.Nodes))
	return plan, nil
}

// gather waits until all ranks are claimed by nodes that are up, or no more come, or the
// view is settled.
func (r *viewRanks) gather(ctx context.Context) error {
	deadline := time.After(gatherTime)
	before := ""
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for {
		changed := r.views.config.State.ClusterChanged()
		claims := r.views.config.State.Claims(r.view.Dataset, r.view.Ranks)
		if _, settled := r.views.config.State.SettledPlan(r.key); settled || r.views.Ranks.allUp(claims) || len(r.views.config.State.Nodes()) == 1 {
			return nil
		}
		if now := fmt.Sprint(claims); now != before {
			before = now
			quiet.Reset(quietTime)
		}
		select {
		case <-changed:
		case <-quiet.C:
			return nil
		case <-deadline:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

package views

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A Cluster takes the commands of views.
type Cluster interface {
	Self() string
	Do(ctx context.Context, c state.Command) (state.Result, error)
}

// viewRanks tell the cluster on which node each rank of one view is opened, and have it
// settle where they all are. They may be used concurrently. mu guards the fields of what was
// told, and is not held during a call to the cluster.
type viewRanks struct {
	*Ranks
	cluster    Cluster
	tasks      *tasks
	log        *slog.Logger
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
	if r.claimant(rank) == r.self {
		return nil
	}
	_, err := r.cluster.Do(ctx, &state.Claim{
		Dataset: r.view.Dataset, Generation: r.generation, Ranks: r.view.Ranks, Rank: rank, Node: r.self,
	})
	return err
}

// claimant is the node that a rank was opened on last; empty if on none.
func (r *viewRanks) claimant(rank uint64) string {
	for _, run := range r.state.Claims(r.view.Dataset, r.view.Ranks) {
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
	if r.wasTold(rank) || r.claimant(rank) == r.self {
		return
	}
	r.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(r.tasks.ctx, 10*time.Second)
		defer cancel()
		if err := r.claim(ctx, rank); err != nil {
			r.log.Debug("rank not claimed", "view", r.key, "rank", rank, "cause", err)
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
	if p, ok := r.state.SettledPlan(r.key); ok {
		return p, nil
	}
	if err := r.gather(ctx); err != nil {
		return state.SettledPlan{}, err
	}
	result, err := r.cluster.Do(ctx, &state.Settle{View: r.key, Generation: r.generation, Nodes: r.WouldBe(r.view)})
	if err != nil {
		return state.SettledPlan{}, err
	}
	plan := *result.Plan()
	r.log.Info("plan settled", "view", r.key, "ranks", r.view.Ranks, "nodes", len(plan.Nodes))
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
		changed := r.state.ClusterChanged()
		claims := r.state.Claims(r.view.Dataset, r.view.Ranks)
		if _, settled := r.state.SettledPlan(r.key); settled || r.allUp(claims) || len(r.state.Nodes()) == 1 {
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

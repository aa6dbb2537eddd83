package pool

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
)

// An agreed has the cluster's state, as far as this node knows it, and sends the cluster
// commands.
type agreed struct{ config Config }

// How long a node waits for the cluster.
const (
	agreeTime = 10 * time.Second // for what changes something
	knowTime  = 5 * time.Second  // for what only has to be known
)

// Know waits until this node knows what the cluster knows. A name that is not there may
// have been made on another node a moment ago.
func (a *agreed) Know(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, knowTime)
	defer cancel()
	if err := a.config.Member.Ready(ctx); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return meta.Worded(meta.ErrUnavailable, "no node can say what the shuffle pool has: %w", err)
		}
		return err
	}
	return nil
}

// agree has the cluster execute a command.
func (a *agreed) agree(ctx context.Context, c state.Command) (state.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, agreeTime)
	defer cancel()
	return a.config.Cluster.Do(ctx, c)
}

// numbered is the stage of that number, and its job.
func (a *agreed) numbered(ctx context.Context, stage uint64) (state.PoolJob, state.PoolStage, error) {
	for _, known := range []bool{false, true} {
		if known {
			if err := a.Know(ctx); err != nil {
				return state.PoolJob{}, state.PoolStage{}, err
			}
		}
		for _, j := range a.config.State.PoolJobs() {
			for _, g := range a.config.State.Stages(j.Number) {
				if g.Number == stage {
					return j, g, nil
				}
			}
		}
	}
	return state.PoolJob{}, state.PoolStage{}, fmt.Errorf("stage of number %d %w", stage, meta.ErrNotExist)
}

// own are the commits of a stage of which this node has a copy.
func (a *agreed) own(stage uint64) iter.Seq[state.Commit] {
	self, all := a.config.Cluster.Self(), a.config.State.Commits(stage)
	return func(yield func(state.Commit) bool) {
		for _, c := range all.All() {
			if slices.Contains(c.Nodes, self) && !yield(c) {
				return
			}
		}
	}
}

// wanted is the number of copies that a map should have: on a node alone there is one.
func (a *agreed) wanted(spec meta.Stage) int {
	if a.config.Hosts == nil {
		return spec.Copies
	}
	return min(spec.Copies, max(1, a.config.Hosts()))
}

// elsewhere is the number of those that other nodes have of what is written here.
func (a *agreed) elsewhere(spec meta.Stage) int {
	if a.config.Guest {
		return a.wanted(spec)
	}
	return a.wanted(spec) - 1
}

func nameOf(j state.PoolJob, g state.PoolStage) state.StageName {
	return state.StageName{Job: j.Name, Name: g.Name, Number: g.Number}
}

// notEmpty is the error of a command that forgets what is empty. Something may have come
// after this node looked.
func notEmpty(err error) error {
	if errors.Is(err, meta.ErrExist) {
		return unix.ENOTEMPTY
	}
	return err
}

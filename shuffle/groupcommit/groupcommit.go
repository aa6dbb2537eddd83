package groupcommit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
)

// ErrUnknown is for a commit of which the cluster was told, and did not say what became
// of it.
var ErrUnknown = errors.New("the cluster has not said what became of it")

// Unknown is the error of a command, as ErrUnknown where that leaves open whether it was
// executed.
func Unknown(err error) error {
	if errors.Is(err, meta.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: %v", ErrUnknown, err)
	}
	return err
}

// Cluster is the cluster, which executes a command once. It may be called concurrently.
type Cluster interface {
	Agree(context.Context, state.Command) (state.Result, error)
}

// A Queue has the commits of a node agreed on. Those that come while some are under way
// wait for that, and are agreed on together: a command of a thousand maps takes hardly
// longer than one of a single map, which waits for no other. The lock guards the commits
// that wait, and whether the goroutine is there for them; the cluster is asked without it.
type Queue struct {
	cluster Cluster
	within  time.Duration // the cluster is to answer
	ctx     context.Context
	end     context.CancelFunc
	sending sync.WaitGroup // a goroutine, while there are commits

	mu struct {
		sync.Mutex
		sends   bool
		waiting []*pending
	}
}

// A pending is a commit that is to be agreed on. What comes of it is there once done is
// closed.
type pending struct {
	stage, generation uint64
	commit            state.Commit

	done chan struct{}
	won  state.Commit
	err  error
}

// New is one for a cluster that is waited for so long.
func New(c Cluster, within time.Duration) *Queue {
	b := &Queue{cluster: c, within: within}
	b.ctx, b.end = context.WithCancel(context.Background())
	return b
}

// Close gives up what is under way, and waits until it has ended.
func (b *Queue) Close() {
	b.mu.Lock()
	b.end()
	b.mu.Unlock()
	b.sending.Wait()
}

// Commit has an attempt agreed on, and returns the one that has won its map. If ctx ends
// before the cluster was told, nothing has happened; after that the answer is waited for,
// and what comes without one is ErrUnknown.
func (b *Queue) Commit(ctx context.Context, g state.PoolStage, c state.Commit) (state.Commit, error) {
	one := &pending{stage: g.Number, generation: g.Generation, commit: c, done: make(chan struct{})}
	if !b.add(one) {
		return state.Commit{}, fmt.Errorf("this node %w: it ends", meta.ErrUnavailable)
	}
	late := time.NewTimer(b.within)
	defer late.Stop()
	for interrupted := ctx.Done(); ; {
		select {
		case <-one.done:
			return one.won, one.err
		case <-interrupted:
			if b.withdraw(one) {
				return state.Commit{}, cmp.Or(ctx.Err(), context.Canceled)
			}
			interrupted = nil
		case <-late.C:
			if b.withdraw(one) {
				return state.Commit{}, meta.Worded(context.DeadlineExceeded, "the cluster does not answer")
			}
			return state.Commit{}, ErrUnknown
		}
	}
}

// add queues a commit, unless it is closed. If no goroutine sends, one is begun.
func (b *Queue) add(one *pending) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		return false
	}
	b.mu.waiting = append(b.mu.waiting, one)
	if !b.mu.sends {
		b.mu.sends = true
		b.sending.Go(func() {
			for group := b.take(); len(group) > 0; group = b.take() {
				b.send(group)
			}
		})
	}
	return true
}

// withdraw takes a commit back, unless the cluster is told of it already.
func (b *Queue) withdraw(one *pending) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.mu.waiting, one)
	if i >= 0 {
		b.mu.waiting = slices.Delete(b.mu.waiting, i, i+1)
	}
	return i >= 0
}

// take takes commits out of the queue, in the order of stages and maps, of each map one
// and of each stage those of one generation. When there is none, the sending goroutine ends.
func (b *Queue) take() (group []*pending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var left []*pending
	taken, generations := make(map[[2]uint64]bool), make(map[uint64]uint64)
	for _, one := range b.mu.waiting {
		of := [2]uint64{one.stage, one.commit.Map}
		generation, begun := generations[one.stage]
		if len(group) == state.MaxCommitMaps || taken[of] || begun && generation != one.generation {
			left = append(left, one)
			continue
		}
		taken[of], generations[one.stage] = true, one.generation
		group = append(group, one)
	}
	b.mu.waiting, b.mu.sends = left, len(group) > 0
	slices.SortFunc(group, func(x, y *pending) int {
		return cmp.Or(cmp.Compare(x.stage, y.stage), cmp.Compare(x.commit.Map, y.commit.Map))
	})
	return group
}

// send has the cluster agree on commits, and tells the callers that wait for them.
func (b *Queue) send(group []*pending) {
	c := new(state.CommitMaps)
	for _, one := range group {
		if n := len(c.Maps); n == 0 || c.Maps[n-1].Stage != one.stage {
			c.Maps = append(c.Maps, state.StageMaps{Stage: one.stage, Generation: one.generation})
		}
		last := &c.Maps[len(c.Maps)-1]
		last.Maps = append(last.Maps, one.commit)
	}
	ctx, cancel := context.WithTimeout(b.ctx, b.within)
	defer cancel()
	r, err := b.cluster.Agree(ctx, c)
	err = Unknown(err)
	all := r.Maps()
	if err == nil && len(all) != len(group) {
		err = fmt.Errorf("answer about %d of %d maps %w", len(all), len(group), meta.ErrCorrupt)
	}
	for i, one := range group {
		switch {
		case err != nil:
			one.err = err
		case all[i].Error != nil:
			one.err = all[i].Error
		default:
			one.won = *all[i].Commit
		}
		close(one.done)
	}
}

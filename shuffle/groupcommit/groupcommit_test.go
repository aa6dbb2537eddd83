package groupcommit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A slowCluster takes its time for each command, and notes the maps of each, with a
// hundred times the stage. The first attempt of a map wins, and map 13 is refused.
type slowCluster struct {
	takes time.Duration
	mu    struct {
		sync.Mutex
		won      map[[2]uint64]state.Commit
		commands [][]uint64
	}
}

func (c *slowCluster) Agree(ctx context.Context, k state.Command) (state.Result, error) {
	select {
	case <-time.After(c.takes):
	case <-ctx.Done():
		return state.Result{}, fmt.Errorf("the leader %w: %w", meta.ErrUnavailable, ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var maps []uint64
	var all []state.Committed
	for _, g := range k.(*state.CommitMaps).Maps {
		for _, one := range g.Maps {
			maps = append(maps, 100*g.Stage+one.Map)
			all = append(all, c.result(g.Stage, one))
		}
	}
	c.mu.commands = append(c.mu.commands, maps)
	b, err := json.Marshal(map[string]any{"Maps": all})
	if err != nil {
		return state.Result{}, err
	}
	var r state.Result
	err = json.Unmarshal(b, &r)
	return r, err
}

func (c *slowCluster) result(stage uint64, one state.Commit) state.Committed {
	if one.Map == 13 {
		return state.Committed{Error: meta.Tell(meta.ErrUnequal)}
	}
	of := [2]uint64{stage, one.Map}
	won, ok := c.mu.won[of]
	if !ok {
		c.mu.won[of], won = one, one
	}
	return state.Committed{Commit: &won}
}

const within = 10 * time.Second

func batched(takes time.Duration) (*Queue, *slowCluster) {
	c := &slowCluster{takes: takes}
	c.mu.won = make(map[[2]uint64]state.Commit)
	return New(c, within), c
}

var someStage = state.PoolStage{Number: 0}

// What comes while a command is under way goes together with the next one, a second
// attempt of a map with the one after that; each learns what became of its own.
func TestCommitsGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := batched(time.Second)
		defer b.Close()
		var all sync.WaitGroup
		commit := func(stage, number, attempt, wins uint64, want error) {
			all.Go(func() {
				won, err := b.Commit(t.Context(), state.PoolStage{Number: stage}, state.Commit{Map: number, Attempt: attempt})
				if !errors.Is(err, want) || err == nil && (won.Map != number || won.Attempt != wins) {
					t.Errorf("map %d, attempt %d: %+v, %v", number, attempt, won, err)
				}
			})
			synctest.Wait()
		}
		commit(1, 7, 0, 0, nil) // goes alone
		commit(2, 9, 4, 4, nil)
		commit(1, 13, 0, 0, meta.ErrUnequal)
		commit(1, 2, 0, 0, nil)
		commit(1, 9, 1, 1, nil)
		commit(2, 9, 5, 4, nil)
		begin := time.Now()
		all.Wait()
		if got := fmt.Sprint(c.mu.commands); got != "[[107] [102 109 113 209] [209]]" || time.Since(begin) != 3*time.Second {
			t.Errorf("commands of maps %s, in %v", got, time.Since(begin))
		}
	})
}

// No more go together than a command may have.
func TestManyCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := batched(time.Second)
		defer b.Close()
		var all sync.WaitGroup
		const n = 2*state.MaxCommitMaps + 5
		for i := range uint64(n) {
			all.Go(func() {
				if _, err := b.Commit(t.Context(), someStage, state.Commit{Map: i}); i != 13 && err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		sum := 0
		for _, maps := range c.mu.commands {
			sum += len(maps)
			if len(maps) > state.MaxCommitMaps {
				t.Errorf("a command of %d maps", len(maps))
			}
		}
		if sum != n || len(c.mu.commands) > 4 {
			t.Errorf("%d maps in %d commands", sum, len(c.mu.commands))
		}
	})
}

// A commit that is interrupted before the cluster was told has not happened. One that it
// was told of waits for the answer, but not for ever; and what waits behind it is told
// that nothing has happened.
func TestInterruptedCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := batched(4 * time.Second)
		defer b.Close()
		ctx, interrupt := context.WithCancel(t.Context())
		var all sync.WaitGroup
		commit := func(number uint64, want error) {
			all.Go(func() {
				if _, err := b.Commit(ctx, someStage, state.Commit{Map: number}); !errors.Is(err, want) || errors.Is(err, ErrUnknown) {
					t.Errorf("map %d: %v, want %v", number, err, want)
				}
			})
			synctest.Wait()
		}
		commit(1, nil)
		commit(2, context.Canceled)
		interrupt()
		all.Wait()
		if got := fmt.Sprint(c.mu.commands); got != "[[1]]" {
			t.Errorf("commands of maps %s", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b, _ := batched(time.Hour)
		defer b.Close()
		var all sync.WaitGroup
		begin := time.Now()
		for i, want := range []error{ErrUnknown, ErrUnknown, context.DeadlineExceeded} { // of one map: one after the other
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if _, err := b.Commit(t.Context(), someStage, state.Commit{Map: 1}); !errors.Is(err, want) || want != ErrUnknown && errors.Is(err, ErrUnknown) {
					t.Errorf("without an answer, commit %d: %v, want %v", i, err, want)
				}
			})
		}
		all.Wait()
		if waited := time.Since(begin); waited > 2*within {
			t.Errorf("it took %v", waited)
		}
	})
}

// A Queue that is closed gives up what is under way, and takes nothing more.
func TestClosedBatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := batched(time.Hour)
		var all sync.WaitGroup
		for i := range uint64(2) {
			all.Go(func() {
				if _, err := b.Commit(t.Context(), someStage, state.Commit{Map: i}); !errors.Is(err, ErrUnknown) {
					t.Errorf("under way when it was closed: %v", err)
				}
			})
		}
		synctest.Wait()
		b.Close()
		all.Wait()
		if _, err := b.Commit(t.Context(), someStage, state.Commit{}); !errors.Is(err, meta.ErrUnavailable) {
			t.Errorf("after that: %v", err)
		}
	})
}

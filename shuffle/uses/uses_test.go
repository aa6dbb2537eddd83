package uses_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta/state"
	"rankfs/shuffle/uses"
)

// A cluster has a job, and notes what it is told.
type cluster struct {
	mu   sync.Mutex
	job  state.PoolJob
	told []string
}

func (c *cluster) Self() string { return "a" }

func (c *cluster) PoolJobs() []state.PoolJob {
	c.mu.Lock()
	defer c.mu.Unlock()
	return []state.PoolJob{c.job}
}

func (c *cluster) Do(_ context.Context, k state.Command) (state.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch k := k.(type) {
	case *state.UseJob:
		c.told = append(c.told, fmt.Sprintf("open %v, hold %v", k.Open, k.Hold))
		c.job.Users = nil
		if k.Open {
			c.job.Users = map[string]int64{k.Node: 1}
		}
	case *state.DropJob:
		c.told = append(c.told, "drop "+k.Name)
	}
	return state.Result{}, nil
}

// A job is in use until a while after the last close in it, of which the cluster is told once; one that
// is not used goes when it has lived so for as long as it may, and not before this node has seen
// that.
func TestUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var follows sync.WaitGroup
		defer follows.Wait()
		defer cancel()
		c := &cluster{job: state.PoolJob{Name: "j", Number: 7, Life: int64(time.Minute)}}
		u := uses.New(c, c, time.Second, slog.New(slog.DiscardHandler))
		follows.Go(func() { u.Follow(ctx) })
		says := func(when string, want ...string) {
			t.Helper()
			c.mu.Lock()
			defer c.mu.Unlock()
			if !slices.Equal(c.told, want) {
				t.Errorf("%s the cluster was told %q, want %q", when, c.told, want)
			}
			c.told = nil
		}
		first := u.Add(c.job, false)
		synctest.Wait()
		says("when it is opened", "open true, hold false")
		first()
		u.Add(c.job, false)()
		time.Sleep(4 * time.Second)
		says("a moment after it was closed")
		time.Sleep(4 * time.Second)
		says("a while after it was closed", "open false, hold false")
		time.Sleep(50 * time.Second)
		says("before it has lived")
		time.Sleep(8 * time.Second)
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.told) == 0 || c.told[0] != "drop j" {
			t.Errorf("when it has lived the cluster was told %q", c.told)
		}
	})
}

// What an earlier daemon has said to be in use is so no longer.
func TestAdoptedUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var follows sync.WaitGroup
		defer follows.Wait()
		defer cancel()
		c := &cluster{job: state.PoolJob{Name: "j", Number: 7, Life: int64(time.Hour), Users: map[string]int64{"a": 1}}}
		u := uses.New(c, c, time.Second, slog.New(slog.DiscardHandler))
		u.Adopt()
		follows.Go(func() { u.Follow(ctx) })
		time.Sleep(10 * time.Second)
		c.mu.Lock()
		defer c.mu.Unlock()
		if want := []string{"open false, hold false"}; !slices.Equal(c.told, want) {
			t.Errorf("the cluster was told %q, want %q", c.told, want)
		}
	})
}

package group

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

// A reign is the time from one change of the leader, as this node sees it, to
// the next. A leader that is lost may keep its connections and never answer; so
// what it was asked is given up when its reign ends.
type reign struct {
	mu struct {
		sync.Mutex
		ctx context.Context // done when it ends
		end context.CancelFunc
	}
}

func (r *reign) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.end != nil {
		r.mu.end()
	}
	r.mu.ctx, r.mu.end = context.WithCancel(context.Background())
}

func (r *reign) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.end()
}

func (r *reign) now() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.ctx
}

// observe has reigns follow one another.
func (g *Group) observe(ctx context.Context) {
	changes := make(chan raft.Observation, 1) // one that waits stands for those that come
	o := raft.NewObserver(changes, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	g.raft.RegisterObserver(o)
	defer g.raft.DeregisterObserver(o)
	for {
		select {
		case <-changes:
			g.reign.begin()
			g.courier.giveUp()
		case <-ctx.Done():
			return
		}
	}
}

// toLeader asks the leader something, for as long as it leads.
func (g *Group) toLeader(ctx context.Context, ask func(ctx context.Context, leader string) error) error {
	reign := g.reign.now()
	leader := g.Leader()
	if leader == "" {
		return g.unled()
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(reign, cancel)()
	err := ask(within, leader)
	// It was cancelled, and not by who asks, whose time may be up by now.
	if err != nil && errors.Is(within.Err(), context.Canceled) && !errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%w (node %s led)", errNoLeader, leader)
	}
	return err
}

// unled is errNoLeader, and what the clocks have to do with it.
func (g *Group) unled() error {
	if why := g.home.alien.Load(); why != nil {
		return fmt.Errorf("%w: %v", errNoLeader, *why)
	}
	return errNoLeader
}

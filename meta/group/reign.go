package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/raft"

	"rankfs/meta"
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
	// The reign ended and cancelled it: the caller did not, though its deadline may have
	// passed by now.
	if err != nil && errors.Is(within.Err(), context.Canceled) && !errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%w (node %s led)", errNoLeader, leader)
	}
	if errors.Is(err, meta.ErrNoSpace) {
		err = fmt.Errorf("%w (%w)", err, meta.ErrUnavailable) // for now: it leads no more
	}
	return err
}

// unled is errNoLeader, with the nodes that do not answer, and whether the clocks are
// the cause.
func (g *Group) unled() error {
	err := errNoLeader
	if missing := g.Missing(); len(missing) > 0 {
		err = fmt.Errorf("cluster %w: it has no leader; a majority of the voters must be up, but these do not answer: %s; see: rankfs node ls",
			meta.ErrUnavailable, strings.Join(missing, ", "))
	}
	if why := g.home.alien.Load(); why != nil {
		return fmt.Errorf("%w: %v", err, *why)
	}
	return err
}

// Missing are the voters, by host and address, that did not answer when this node
// looked for a leader last; none while there is one.
func (g *Group) Missing() (missing []string) {
	servers := g.servers()
	for _, id := range g.Silent() {
		if n, ok := g.config.Machine.Node(id); ok && isVoter(servers[id]) {
			missing = append(missing, fmt.Sprintf("%s (%s)", n.Host, n.Addr))
		}
	}
	slices.Sort(missing)
	return missing
}

// Silent are the nodes that did not answer when this one looked for a leader
// last; none while there is a leader, which knows better.
func (g *Group) Silent() []string {
	silent := g.home.silent.Load()
	if silent == nil || g.Leader() != "" {
		return nil
	}
	return *silent
}

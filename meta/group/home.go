package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// A hello is sent by a node that was started, or hears from no leader. It does not wait
// for the leader's call: the leader may take it for dead, know an old address of it, or
// have removed it and never call again.
type hello struct {
	Addr string `json:"addr"`
	Life uint64 `json:"life"`
	Deaf bool   `json:"deaf,omitempty"` // it hears from no leader
	Lost bool   `json:"lost,omitempty"` // its log or its snapshots cannot be read
}

// A welcome is the answer of the leader, or of another node that knows the leader.
type welcome struct {
	Leader  string `json:"leader,omitempty"` // ask that one
	Addr    string `json:"addr,omitempty"`   // where it is
	Applied uint64 `json:"applied,omitempty"`
	Wait    bool   `json:"wait,omitempty"` // the others still count on what was lost
}

// A home is how a node stands with its cluster.
type home struct {
	begun   chan struct{}            // closed when the cluster knows that it was started, and it what the cluster knew then
	removed chan struct{}            // closed when it turns out that it was removed
	once    sync.Once                // of closing removed
	why     atomic.Pointer[error]    // of not having begun yet
	alien   atomic.Pointer[error]    // a certificate that is not of now, which was in the way last
	silent  atomic.Pointer[[]string] // nodes that did not answer when there was no leader
	behind  chan struct{}            // closed when this node has read what only a later release can
	halt    sync.Once                // of closing behind
}

// Begun waits until the cluster knows that this node was started, and this node
// what the cluster knew then. It is trust.ErrRemoved that the node was removed.
func (g *Group) Begun(ctx context.Context) error {
	select {
	case <-g.home.begun:
		return nil
	case <-g.home.removed:
		return trust.ErrRemoved
	case <-g.home.behind:
		return g.config.Machine.Err()
	case <-ctx.Done():
		if why := g.home.why.Load(); why != nil {
			return *why
		}
		return fmt.Errorf("%w: %w", errNoLeader, ctx.Err())
	}
}

// Removed reports whether this node has learnt that it was removed.
func (g *Group) Removed() bool {
	select {
	case <-g.home.removed:
		return true
	default:
		return g.config.Machine.Removed(g.config.Self.ID)
	}
}

// refused notes what a node has learnt from one that it has dialled.
func (g *Group) refused(err error) {
	if errors.Is(err, trust.ErrRemoved) {
		g.home.once.Do(func() { close(g.home.removed) })
	}
	var u *trust.Untimely
	if errors.As(err, &u) {
		g.home.alien.Store(&err)
	} else if err == nil {
		g.home.alien.Store(nil)
	}
}

// callHome tells the cluster that this node was started, and calls again whenever it
// has heard from no leader for a while.
func (g *Group) callHome(ctx context.Context) {
	begun, tries := false, 0
	for ctx.Err() == nil {
		reign, wait := g.reign.now(), time.Hour
		switch {
		case begun && g.Leader() != "":
			tries = 0
		case begun && tries == 0: // an election is sooner over
			wait = g.times.dead
			tries++
		default:
			applied, err := g.sayHello(ctx, false)
			if err == nil && !begun {
				begun, tries = true, 0
				g.done.Go(func() { g.settleIn(ctx, applied) })
				continue
			}
			if g.config.Machine.Err() != nil {
				g.home.halt.Do(func() { close(g.home.behind) })
			}
			if err != nil {
				why := fmt.Errorf("this node cannot say that it was started: %w", err)
				g.home.why.Store(&why)
			}
			wait = min(g.times.pause<<min(tries, 10), g.times.look)
			tries++
		}
		select {
		case <-reign.Done():
		case <-time.After(wait):
		case <-g.home.removed:
			return
		case <-ctx.Done():
		}
	}
}

// settleIn waits until this node knows what the cluster knew when it heard of it.
// It may be sent a snapshot, and that takes as long as it takes: to call again
// would cut it off.
func (g *Group) settleIn(ctx context.Context, applied uint64) {
	why := fmt.Errorf("this node %w: it is behind the cluster, and catches up", meta.ErrUnavailable)
	g.home.why.Store(&why)
	if g.follow(ctx, applied) == nil {
		close(g.home.begun)
	} else if g.config.Machine.Err() != nil {
		g.home.halt.Do(func() { close(g.home.behind) })
	}
}

// awaitRemoval has this node leave when it learns that it was removed, from its
// own copy of the state or from one that does not let it in.
func (g *Group) awaitRemoval(ctx context.Context) {
	for {
		changed := g.config.Machine.Changed()
		if g.config.Machine.Removed(g.config.Self.ID) {
			g.refused(trust.ErrRemoved)
		}
		select {
		case <-g.home.removed:
			g.leave()
			return
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// leave ends the part of a removed node in its cluster: it logs that, asks for no vote
// any more, and forgets what only voters may know. It goes on serving what it has.
func (g *Group) leave() {
	g.config.Log.Error("this node serves what it has and learns nothing new", "cause", trust.ErrRemoved)
	g.endRaft()
	if err := g.forget(); err != nil {
		g.config.Log.Error("the authority's key is still on this node", "cause", err)
	}
}

// sayHello has the leader hear of this node, through others if it is not known,
// and returns how far the leader was then.
func (g *Group) sayHello(ctx context.Context, lost bool) (applied uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, g.times.look)
	defer cancel()
	self := g.config.Self
	h := hello{Addr: self.Addr, Life: self.Life, Deaf: lost || g.Leader() == "", Lost: lost}
	w, err := g.greeted(ctx, h)
	if leader := w.Leader; err == nil && leader != "" && leader != self.ID {
		g.known.meet(acquaintance{leader, w.Addr})
		w = welcome{}
		err = g.calls.ask(ctx, leader, callHello, h, &w)
	}
	switch {
	case err != nil:
		return 0, err
	case w.Wait:
		return 0, fmt.Errorf("the cluster %w: it has not yet let go of what this node was", meta.ErrUnavailable)
	case w.Leader != "":
		return 0, errNoLeader
	}
	return w.Applied, nil
}

// greeted is the first answer of the nodes that are asked, or why there is none.
func (g *Group) greeted(ctx context.Context, h hello) (welcome, error) {
	if g.raft != nil && g.Leads() {
		return g.begin(ctx, g.config.Self.ID, h)
	}
	asked := g.whom()
	type said struct {
		welcome
		id  string
		err error
	}
	answers := make(chan said, len(asked))
	var all sync.WaitGroup
	defer all.Wait()
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, id := range asked {
		all.Go(func() {
			s := said{id: id}
			s.err = g.calls.ask(within, id, callHello, h, &s.welcome)
			answers <- s
		})
	}
	last := said{err: errNoLeader}
	var silent []string
	for range asked {
		s := <-answers
		if s.err == nil || errors.Is(s.err, trust.ErrRemoved) {
			return s.welcome, s.err
		}
		if last.err == errNoLeader {
			last = s
		}
		if told := new(meta.Told); !errors.As(s.err, &told) {
			silent = append(silent, s.id)
		}
	}
	g.home.silent.Store(&silent)
	return welcome{}, last.err
}

// whom are the nodes to ask: the leader if this node knows it, or else voters, and
// others that may know the leader.
func (g *Group) whom() (ids []string) {
	if g.raft != nil {
		if leader := g.Leader(); leader != "" {
			return []string{leader}
		}
		for id, s := range g.servers() {
			if isVoter(s) {
				ids = append(ids, id)
			}
		}
	}
	for _, a := range g.known.list() {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == g.config.Self.ID })
	return ids[:min(len(ids), maxKnown)]
}

// serveHello hears of another node.
func (g *Group) serveHello(ctx context.Context, from string, request json.RawMessage) (any, error) {
	h, err := decode[hello](request)
	if err != nil {
		return nil, err
	}
	if g.Leads() {
		ctx, cancel := context.WithTimeout(ctx, g.times.patience)
		defer cancel()
		if h.Lost {
			return g.release(ctx, from)
		}
		return g.begin(ctx, from, h)
	}
	leader, ok := g.config.Machine.Node(g.Leader())
	if !ok || leader.ID == from {
		return nil, errNoLeader
	}
	return welcome{Leader: leader.ID, Addr: leader.Addr}, nil
}

// begin enters that a node was started, and has Raft send it the log at once: on new
// connections, if the old ones lead to its previous process, or nowhere.
func (g *Group) begin(ctx context.Context, id string, h hello) (welcome, error) {
	g.seen.found(id, time.Now())
	before, _ := g.config.Machine.Node(id)
	switch {
	case id == g.config.Self.ID:
	case h.Deaf || before.Life != 0 && before.Life != h.Life:
		g.courier.called(raft.ServerID(id))
	default:
		g.courier.heard(raft.ServerID(id))
	}
	a, err := g.apply(ctx, state.Sender{Node: id}, &state.Begin{ID: id, Addr: h.Addr, Life: h.Life})
	return welcome{Applied: a.Index}, err
}

// release lets go of a replica whose log is lost, and with it the votes it gave and the
// entries it acknowledged; so it must be out of Raft's configuration, and all nodes must
// know, before it begins with an empty log.
func (g *Group) release(ctx context.Context, id string) (welcome, error) {
	if _, ok := g.config.Machine.Node(id); !ok {
		return welcome{}, meta.Worded(meta.ErrNotExist, "node %s does not exist in this cluster", id)
	}
	g.seen.lose(id, time.Now())
	if g.servers()[id].ID != "" {
		return welcome{Wait: true}, nil
	}
	// It is out of what this node has written. When that is agreed on, it is out.
	if _, err := g.write(ctx, func() raft.Future { return g.raft.Barrier(g.times.patience) }); err != nil {
		return welcome{}, err
	}
	return welcome{Wait: g.servers()[id].ID != ""}, nil
}

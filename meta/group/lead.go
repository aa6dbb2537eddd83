package group

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// sightings are when each node answered last, as the leader knows.
type sightings struct {
	mu struct {
		sync.Mutex
		last map[string]time.Time
		said map[string]pulse
		off  map[string]time.Duration // how far their clocks are ahead of this node's
		lost map[string]bool          // nodes whose log is lost, until they begin anew
	}
}

func (s *sightings) begin(ids []string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.last, s.mu.said, s.mu.lost = make(map[string]time.Time), make(map[string]pulse), make(map[string]bool)
	s.mu.off = make(map[string]time.Duration)
	for _, id := range ids {
		s.mu.last[id] = now
	}
}

// saw notes what a node has said when this one's clock showed what it shows.
func (s *sightings) saw(id string, p pulse, clock, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.last[id], s.mu.said[id] = now, p
	s.mu.off[id] = time.Unix(0, p.Clock).Sub(clock)
}

// doubt notes how far off a node's clock seems to be that does not answer.
func (s *sightings) doubt(id string, ahead time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.off[id] = ahead
}

// ahead is how far the clock of a node was ahead of this one's.
func (s *sightings) ahead(id string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.off[id]
}

// heard notes that a node has said something.
func (s *sightings) heard(id string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.last != nil { // this node has led
		s.mu.last[id] = now
	}
}

// found notes that a node has begun.
func (s *sightings) found(id string, now time.Time) {
	s.heard(id, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.lost, id)
}

// lose notes that a node has nothing of what Raft counts on.
func (s *sightings) lose(id string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.lost != nil {
		s.mu.lost[id] = true
		s.mu.last[id] = now
	}
}

func (s *sightings) isLost(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.lost[id]
}

// signs reports whether a node has said that it has the authority's key, and
// whether it has said anything.
func (s *sightings) signs(id string) (signs, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.mu.said[id]
	return p.Signs, known
}

// speaks is the newest version of commands that a node understands, if it has said
// anything.
func (s *sightings) speaks(id string) (version int, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.mu.said[id]
	return max(p.Speaks, state.Oldest), known
}

func (s *sightings) of(id string) (last time.Time, applied uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.last[id], s.mu.said[id].Applied
}

// lead does what a leader has to do beside Raft, whenever this node is one.
func (g *Group) lead(ctx context.Context) {
	tick := time.NewTicker(g.times.tick)
	defer tick.Stop()
	led := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		leads := g.Leads()
		if leads && !led {
			g.seen.begin(g.ids(), time.Now())
		}
		if led = leads; leads {
			g.look(ctx)
			if g.compare() {
				g.handOver()
				continue // with a wrong clock it must not decide which nodes are dead
			}
			g.report(ctx)
			g.goOver(ctx)
			g.reconcile(ctx)
			g.shareKey(ctx)
		}
	}
}

func (g *Group) ids() []string {
	var ids []string
	for _, n := range g.config.Machine.Nodes() {
		ids = append(ids, n.ID)
	}
	return ids
}

// maxLooks bounds how many nodes are asked at once.
const maxLooks = 32

// look asks all nodes whether they are there.
func (g *Group) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, g.times.look)
	defer cancel()
	slots := make(chan struct{}, maxLooks)
	var all sync.WaitGroup
	defer all.Wait()
	for _, id := range g.ids() {
		if id == g.config.Self.ID {
			g.seen.saw(id, g.pulse(), g.config.Now(), time.Now())
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			var p pulse
			err := g.calls.ask(ctx, id, callPulse, struct{}{}, &p)
			if err == nil {
				g.seen.saw(id, p, g.config.Now(), time.Now())
				return
			}
			var u *trust.Untimely
			if errors.As(err, &u) {
				g.seen.doubt(id, u.Off)
			} else {
				g.seen.doubt(id, 0)
			}
		})
	}
}

// live reports whether a node has answered lately.
func (g *Group) live(id string, now time.Time) bool {
	last, _ := g.seen.of(id)
	return now.Sub(last) < g.times.dead
}

// report enters which nodes have come up and which have gone down.
func (g *Group) report(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, g.times.patience)
	defer cancel()
	now := time.Now()
	for _, n := range g.config.Machine.Nodes() {
		if up := g.live(n.ID, now); up != n.Up {
			if _, err := g.apply(ctx, g.itself(), &state.Health{ID: n.ID, Life: n.Life, Up: up}); err != nil {
				return
			}
			g.config.Log.Info("node changed", "node", n.ID, "host", n.Host, "up", up)
		}
	}
}

func (g *Group) servers() map[string]raft.Server {
	servers := make(map[string]raft.Server)
	future := g.raft.GetConfiguration()
	if future.Error() == nil {
		for _, s := range future.Configuration().Servers {
			servers[string(s.ID)] = s
		}
	}
	return servers
}

// maxSteps bounds the steps between two rounds of look.
const maxSteps = 8

// reconcile takes steps towards the configuration that Raft should have. One
// follows the other at once: between the first vote given and the last a cluster
// may have an even number, which outlives no more than one less.
func (g *Group) reconcile(ctx context.Context) {
	for range maxSteps {
		switch c, err := g.takeStep(ctx); {
		case err == nil && c.do == nothing:
			g.stepDown()
			return
		case !g.told("members of the cluster not changed", c.id, err):
			return
		}
	}
}

// takeStep takes the step that is most needed. It holds the ballot, so that no voter
// leaves meanwhile.
func (g *Group) takeStep(ctx context.Context) (change, error) {
	select {
	case g.ballot <- struct{}{}:
		defer func() { <-g.ballot }()
	case <-ctx.Done():
		return change{}, ctx.Err()
	}
	c := g.next()
	if c.do == nothing {
		return c, nil
	}
	n, _ := g.config.Machine.Node(c.id)
	return c, g.change(ctx, c, n, g.servers()[c.id])
}

// next is the step that Raft's configuration needs, as this node, leading, sees it.
func (g *Group) next() change {
	servers, now := g.servers(), time.Now()
	byID := make(map[string]member)
	for id, s := range servers {
		byID[id] = member{id: id, server: true, voter: isVoter(s), live: g.live(id, now)}
	}
	for _, n := range g.config.Machine.Nodes() {
		m := byID[n.ID]
		m.id, m.admit, m.idle, m.lost, m.since = n.ID, true, n.Drained, g.seen.isLost(n.ID), uint64(n.Admitted)
		m.live = g.live(n.ID, now)
		_, m.heard = g.seen.signs(n.ID)
		m.server = m.server && servers[n.ID].Address == raftAddress(n.ID, n.Addr)
		byID[n.ID] = m
	}
	return next(g.config.Self.ID, slices.Collect(maps.Values(byID)))
}

// stepDown gives the lead away if this node is drained.
func (g *Group) stepDown() {
	if n, _ := g.config.Machine.Node(g.config.Self.ID); n.Drained && len(g.servers()) > 1 {
		_ = g.raft.LeadershipTransfer().Error() // tried again at the next tick
	}
}

func (g *Group) change(ctx context.Context, c change, n state.Node, s raft.Server) error {
	id, wait := raft.ServerID(c.id), g.times.patience
	switch c.do {
	case add:
		if s.Suffrage == raft.Voter && s.ID == id {
			return g.raft.AddVoter(id, raftAddress(n.ID, n.Addr), 0, wait).Error() // it has moved
		}
		return g.raft.AddNonvoter(id, raftAddress(n.ID, n.Addr), 0, wait).Error()
	case promote:
		if g.live(c.id, time.Now()) { // or it gets the key when it is back
			if err := g.entrust(ctx, c.id); err != nil {
				return err
			}
		}
		g.config.Log.Info("node becomes a voter", "node", c.id, "host", n.Host)
		return g.raft.AddVoter(id, raftAddress(n.ID, n.Addr), 0, wait).Error()
	case demote:
		g.config.Log.Info("node is a voter no more", "node", c.id, "host", n.Host)
		return g.raft.DemoteVoter(id, 0, wait).Error()
	case remove:
		err := g.raft.RemoveServer(id, 0, wait).Error()
		g.courier.called(id) // ends the waits for it
		return err
	}
	panic(fmt.Sprintf("change %d", c.do))
}

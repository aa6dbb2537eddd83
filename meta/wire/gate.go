package wire

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"rankfs/meta"
)

// A gate bounds what is done for other nodes at once: for all of them, and for
// each. Further requests wait in a queue, which is bounded too, and are let in in
// turn, except those of a node that has its share already.
type gate struct {
	limits *Limits

	mu struct {
		sync.Mutex
		runs  int // held in memory
		inner int // requests let in
		loads map[string]*load
		queue []*ticket
	}
}

// A load is what one node has here; forgotten when it has nothing.
type load struct{ conns, inner int }

type ticket struct {
	node string
	turn chan struct{} // closed when it may go in
}

func newGate(l *Limits) *gate {
	g := &gate{limits: l}
	g.mu.loads = make(map[string]*load)
	return g
}

// connect counts a connection of a node.
func (g *gate) connect(node string) (done func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.load(node)
	if l.conns >= g.limits.PeerConns {
		return nil, false
	}
	l.conns++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		l.conns--
		g.tidy(node)
	}, true
}

// hold counts runs that are kept in memory.
func (g *gate) hold(n int) (done func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.runs+n > g.limits.Runs {
		return nil, false
	}
	g.mu.runs += n
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.mu.runs -= n
	}, true
}

// enter waits for a request's turn, no longer than it wants to wait.
func (g *gate) enter(ctx context.Context, node string, wait time.Duration) (leave func(), err error) {
	t, err := g.queue(node, wait)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(min(wait, g.limits.Wait))
	defer timer.Stop()
	leave = func() { g.leave(node) }
	select {
	case <-t.turn: // also if the others came true in the same moment
		return leave, nil
	default:
	}
	select {
	case <-t.turn:
		return leave, nil
	case <-ctx.Done():
		g.give(t, leave)
		return nil, context.Cause(ctx)
	case <-timer.C:
		g.give(t, leave)
		return nil, g.busy()
	}
}

func (g *gate) busy() error {
	return fmt.Errorf("node %w: %d requests are under way here", meta.ErrBusy, g.limits.Requests)
}

// queue lets a request in, or gives it a place.
func (g *gate) queue(node string, wait time.Duration) (*ticket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := &ticket{node, make(chan struct{})}
	g.mu.queue = append(g.mu.queue, t)
	g.admit()
	waits := slices.Index(g.mu.queue, t) >= 0
	if waits && (wait <= 0 || len(g.mu.queue) > g.limits.Queue) {
		g.mu.queue = slices.DeleteFunc(g.mu.queue, func(o *ticket) bool { return o == t })
		return nil, g.busy()
	}
	return t, nil
}

// give takes back a ticket that may have been let in meanwhile.
func (g *gate) give(t *ticket, leave func()) {
	g.mu.Lock()
	i := slices.Index(g.mu.queue, t)
	if i >= 0 {
		g.mu.queue = slices.Delete(g.mu.queue, i, i+1)
	}
	g.mu.Unlock()
	if i < 0 {
		leave()
	}
}

// admit lets in the requests that it can. mu is held, as for all below.
func (g *gate) admit() {
	for i := 0; i < len(g.mu.queue) && g.mu.inner < g.limits.Requests; {
		t := g.mu.queue[i]
		l := g.load(t.node)
		if l.inner >= g.limits.PerPeer {
			i++
			continue
		}
		l.inner++
		g.mu.inner++
		g.mu.queue = slices.Delete(g.mu.queue, i, i+1)
		close(t.turn)
	}
}

func (g *gate) leave(node string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.inner--
	g.load(node).inner--
	g.tidy(node)
	g.admit()
}

func (g *gate) load(node string) *load {
	l := g.mu.loads[node]
	if l == nil {
		l = new(load)
		g.mu.loads[node] = l
	}
	return l
}

func (g *gate) tidy(node string) {
	if l := g.mu.loads[node]; *l == (load{}) {
		delete(g.mu.loads, node)
	}
}

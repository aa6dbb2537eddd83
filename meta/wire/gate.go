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
// turn, except those of a node that has its share already. The lock guards the queue and
// the counts; a request waits for its ticket without it.
type gate struct {
	max, each int           // requests let in, of all nodes and of one
	places    int           // in the queue
	wait      time.Duration // there

	mu struct {
		sync.Mutex
		inner int            // requests let in
		of    map[string]int // the same, of each node that has one
		queue []*ticket
	}
}

type ticket struct {
	node string
	turn chan struct{} // closed when it may go in
}

func newGate(max, each int, l *Limits) *gate {
	g := &gate{max: max, each: each, places: l.Queue, wait: l.Wait}
	g.mu.of = make(map[string]int)
	return g
}

// enter waits for a request's turn, no longer than it wants to wait.
func (g *gate) enter(ctx context.Context, node string, wait time.Duration) (leave func(), err error) {
	t, err := g.queue(node, wait)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(min(wait, g.wait))
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
	return fmt.Errorf("node %w: %d requests are under way here", meta.ErrBusy, g.max)
}

// queue lets a request in, or gives it a place.
func (g *gate) queue(node string, wait time.Duration) (*ticket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := &ticket{node, make(chan struct{})}
	g.mu.queue = append(g.mu.queue, t)
	g.admit()
	waits := slices.Index(g.mu.queue, t) >= 0
	if waits && (wait <= 0 || len(g.mu.queue) > g.places) {
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

// admit lets in the requests that it can. mu is held.
func (g *gate) admit() {
	for i := 0; i < len(g.mu.queue) && g.mu.inner < g.max; {
		t := g.mu.queue[i]
		if g.mu.of[t.node] >= g.each {
			i++
			continue
		}
		g.mu.of[t.node]++
		g.mu.inner++
		g.mu.queue = slices.Delete(g.mu.queue, i, i+1)
		close(t.turn)
	}
}

func (g *gate) leave(node string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.inner--
	drop(g.mu.of, node)
	g.admit()
}

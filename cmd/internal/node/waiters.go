package node

import (
	"context"
	"time"
)

// waiters are the places of this node's readers of queues whose questions may wait at
// the leader. Each takes a connection to it, of which there are few, and a call of
// those that the leader answers at a time. Who finds no place asks without waiting,
// and again a little later.
type waiters chan struct{}

const (
	mostWaiters = 8 // half of the connections that calls have to a node
	askAgain    = 250 * time.Millisecond
)

// enter takes a place, if there is one.
func (w waiters) enter() bool {
	select {
	case w <- struct{}{}:
		return true
	default:
		return false
	}
}

func (w waiters) leave() { <-w }

// pass is the time of a reader without a place.
func (w waiters) pass(ctx context.Context) {
	select {
	case <-time.After(askAgain):
	case <-ctx.Done():
	}
}

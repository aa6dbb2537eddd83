package dispatch

import (
	"context"
	"time"
)

// places bound the requests of this node that wait at the leader. Each takes one
// of the few connections to it, and one of the calls that the leader answers at a
// time. A reader that finds no place asks without waiting, again and again.
type places chan struct{}

const (
	maxPlaces = 8 // half of the connections that calls have to a node
	askAgain  = 250 * time.Millisecond
)

// enter takes a place, if one is free.
func (p places) enter() bool {
	select {
	case p <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p places) leave() { <-p }

// pause is the time between two requests of a reader without a place.
func (p places) pause(ctx context.Context) {
	select {
	case <-time.After(askAgain):
	case <-ctx.Done():
	}
}

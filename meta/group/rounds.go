package group

import (
	"context"
	"fmt"
	"sync"

	"rankfs/meta"
)

// roundsAtOnce is how many questions are under way: one that hangs does not hold those up
// that come after it.
const roundsAtOnce = 2

// rounds answer callers together: each gets what was asked after it came, by one question
// for all that came since the one before was asked. The lock guards which questions there
// are; the answer of one is read once it is done.
type rounds struct {
	ask   func() (heartbeat, error) // bounded by itself
	tasks sync.WaitGroup            // goroutines that ask

	mu struct {
		sync.Mutex
		asking int
		next   *round // nil if no caller waits for it
		closed bool
	}
}

// A round is one question, and its answer once done is closed.
type round struct {
	done chan struct{}
	is   heartbeat
	err  error
}

// join waits for the next round, and reports whether that ended before ctx did.
func (r *rounds) join(ctx context.Context) (is heartbeat, ended bool, err error) {
	one := r.enter()
	select {
	case <-one.done:
		return one.is, true, one.err
	case <-ctx.Done():
		return heartbeat{}, false, nil
	}
}

// enter is the next round, for which a goroutine is begun if there is room for one.
func (r *rounds) enter() *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return closedRound()
	}
	if r.mu.next == nil {
		r.mu.next = &round{done: make(chan struct{})}
	}
	one := r.mu.next
	if r.mu.asking < roundsAtOnce {
		r.mu.asking++
		r.mu.next = nil
		r.tasks.Go(func() {
			for each := one; each != nil; each = r.following() {
				each.is, each.err = r.ask()
				close(each.done)
			}
		})
	}
	return one
}

var errEnds = fmt.Errorf("this node %w: it ends", meta.ErrUnavailable)

// closedRound is the round of a caller that comes when this node ends.
func closedRound() *round {
	one := &round{done: make(chan struct{}), err: errEnds}
	close(one.done)
	return one
}

// close waits for the rounds under way, and has no more.
func (r *rounds) close() {
	r.mu.Lock()
	r.mu.closed = true
	r.mu.Unlock()
	r.tasks.Wait()
}

// following is the round that callers wait for; if none does, its goroutine ends.
func (r *rounds) following() *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.mu.next
	if r.mu.next = nil; one == nil {
		r.mu.asking--
	}
	return one
}

package batch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"rankfs/meta"
	"rankfs/meta/stall"
)

// The bounds of checks by the node that alone has a source.
const (
	answerAge = time.Second     // so long an answer holds
	checkTime = 2 * time.Second // then there is none
	checkRest = 5 * time.Second // and none is asked again; a node that is silent as long is known to be down
)

// A staleCheck finds out whether a source that another node alone has is still what was
// indexed. The node is asked when an open or a command wants to know and the answer is older
// than answerAge, once for all that want to know then. A node that gives no answer, also one of
// a release that does not know the call, takes nothing back of what it said before.
type staleCheck struct {
	ask  func(ctx context.Context, node string) error // wraps meta.ErrStale: it is not; nil: there is no node to ask
	turn chan struct{}                                // of the one that asks, while the others wait
	last atomic.Pointer[reply]                        // nil: there was none, or it is known here
}

// A reply is the result of a check.
type reply struct {
	node  string
	stale error // nil: the source is what was indexed, as far as is known
	until time.Time
}

func newStaleCheck(ask func(ctx context.Context, node string) error) *staleCheck {
	return &staleCheck{ask: ask, turn: make(chan struct{}, 1)}
}

// stale is an error that wraps meta.ErrStale if the node says that the source has changed.
// An open may wait for the answer.
func (c *staleCheck) stale(ctx context.Context, node string, account *stall.Open) error {
	if r := c.last.Load(); c.ask == nil || r.holds(node) {
		return c.said(node)
	}
	defer account.End(account.For(stall.Peer))
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r := c.last.Load(); !r.holds(node) {
		within, cancel := context.WithTimeout(ctx, checkTime)
		defer cancel()
		err := c.ask(within, node)
		if ctx.Err() != nil {
			return ctx.Err() // the next one asks
		}
		c.note(node, err)
	}
	return c.said(node)
}

// holds reports whether a node need not be asked again now.
func (r *reply) holds(node string) bool {
	return r != nil && r.node == node && time.Now().Before(r.until)
}

// note notes what came of a check.
func (c *staleCheck) note(node string, err error) {
	r := &reply{node: node, until: time.Now().Add(answerAge)}
	switch {
	case errors.Is(err, meta.ErrStale):
		r.stale = err
	case err != nil:
		r.stale, r.until = c.said(node), time.Now().Add(checkRest)
	}
	c.last.Store(r)
}

// said is the last answer of a node: an error if the source has changed.
func (c *staleCheck) said(node string) error {
	if r := c.last.Load(); r != nil && r.node == node {
		return r.stale
	}
	return nil
}

// forget has no answer count: this node can see for itself.
func (c *staleCheck) forget() {
	if c.last.Load() != nil {
		c.last.Store(nil)
	}
}

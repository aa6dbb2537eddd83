package batch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"rankfs/meta"
	"rankfs/meta/stall"
)

// The bounds of questions to the node that alone has a source.
const (
	answerAge    = time.Second     // so long an answer holds
	questionTime = 2 * time.Second // then there is none
	questionRest = 5 * time.Second // and none is asked again; a node that is silent as long is known to be down
)

// A question is whether a source that another node alone has is still what was indexed. It
// is asked when an open or a command wants to know and the answer is older than answerAge,
// once for all that want to know then. A node that gives no answer, also one of a release
// that does not know the question, takes nothing back of what it said before.
type question struct {
	ask  func(ctx context.Context, node string) error // wraps meta.ErrStale: it is not; nil: nobody can be asked
	turn chan struct{}                                // of the one that asks, while the others wait
	last atomic.Pointer[reply]                        // nil: there was none, or it is known here
}

// A reply is what came of a question.
type reply struct {
	node  string
	stale error // nil: the source is what was indexed, as far as is known
	until time.Time
}

func newQuestion(ask func(ctx context.Context, node string) error) *question {
	return &question{ask: ask, turn: make(chan struct{}, 1)}
}

// stale is an error that wraps meta.ErrStale if the node says that the source has changed.
// An open may wait for the answer.
func (q *question) stale(ctx context.Context, node string, account *stall.Open) error {
	if r := q.last.Load(); q.ask == nil || r.holds(node) {
		return q.said(node)
	}
	defer account.End(account.For(stall.Peer))
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r := q.last.Load(); !r.holds(node) {
		within, cancel := context.WithTimeout(ctx, questionTime)
		defer cancel()
		err := q.ask(within, node)
		if ctx.Err() != nil {
			return ctx.Err() // the next one asks
		}
		q.note(node, err)
	}
	return q.said(node)
}

// holds reports whether a node need not be asked again now.
func (r *reply) holds(node string) bool {
	return r != nil && r.node == node && time.Now().Before(r.until)
}

// note notes what came of a question.
func (q *question) note(node string, err error) {
	r := &reply{node: node, until: time.Now().Add(answerAge)}
	switch {
	case errors.Is(err, meta.ErrStale):
		r.stale = err
	case err != nil:
		r.stale, r.until = q.said(node), time.Now().Add(questionRest)
	}
	q.last.Store(r)
}

// said is what a node said last: an error if the source has changed.
func (q *question) said(node string) error {
	if r := q.last.Load(); r != nil && r.node == node {
		return r.stale
	}
	return nil
}

// forget has no answer count: this node can see for itself.
func (q *question) forget() {
	if q.last.Load() != nil {
		q.last.Store(nil)
	}
}

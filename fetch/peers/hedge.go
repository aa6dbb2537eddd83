package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankfs/meta"
	"rankfs/meta/wire"
)

// Hedge is Gather with a second way to the same bytes: fallback reads them into
// memory of its own. Fallback begins when the node fails, or, if the want is not
// to be served alone, has taken longer than most of its requests do. The first to finish wins; the other is stopped and
// waited for.
//
// Spare reports that fallback won: the bytes are where it put them, and nothing
// writes to dst any more. An error means that neither could.
func (c *Client) Hedge(ctx context.Context, node string, w Want, dst [][]byte, fallback func(context.Context) error) (spare bool, err error) {
	r := c.race(ctx, node, w, dst)
	defer r.cancel(nil)
	var late <-chan time.Time
	if !w.Alone {
		timer := time.NewTimer(c.hedgeAfter(node, length(dst)))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-r.done:
		if r.err == nil || ctx.Err() != nil {
			return false, r.err
		}
		if err := fallback(ctx); err != nil {
			return false, neither(r.err, err)
		}
		return true, nil
	case <-late:
	}
	c.count.hedges.Add(1)
	return c.both(ctx, r, fallback)
}

// A race is a Gather from a node, beside which a fallback may run.
type race struct {
	node   string
	bytes  uint64
	begin  time.Time
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has ended; then:
	err    error
}

func (c *Client) race(ctx context.Context, node string, w Want, dst [][]byte) *race {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &race{node: node, bytes: length(dst), begin: time.Now(), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = c.Gather(ctx, node, w, dst)
	}()
	return r
}

// both runs fallback beside the node, and waits for both.
func (c *Client) both(ctx context.Context, r *race, fallback func(context.Context) error) (spare bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	second := make(chan error, 1)
	go func() { second <- fallback(ctx) }()
	select {
	case <-r.done:
		if r.err == nil {
			cancel(wire.ErrSlower)
		}
		err = <-second
	case err = <-second:
		if err == nil {
			r.cancel(wire.ErrSlower)
		}
		<-r.done
	}
	switch {
	case r.err == nil:
		return false, nil
	case err == nil:
		c.count.won.Add(1)
		c.lost(r)
		return true, nil
	}
	return false, neither(r.err, err)
}

// neither is the error where a node and the fallback have failed. That the node serves
// nothing is no reason that there are no bytes.
func neither(node, fallback error) error {
	if errors.Is(node, meta.ErrUnavailable) {
		return fmt.Errorf("%w; and %v", fallback, node)
	}
	return errors.Join(node, fallback)
}

// lost notes that a node was stopped because another way was faster. It would
// have taken longer still; if that were not remembered, a node that has become
// slow would be raced for ever.
func (c *Client) lost(r *race) {
	if errors.Is(r.err, wire.ErrSlower) {
		c.learn(r.node, r.bytes, time.Since(r.begin))
	}
}

// hedgeAfter is how long a node is given before a second way is tried.
func (c *Client) hedgeAfter(node string, bytes uint64) time.Duration {
	if usual, ok := c.usual(node, bytes); ok {
		return max(usual, c.config.HedgeMin)
	}
	return c.config.HedgeBlind
}

package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankfs/cache/stall"
	"rankfs/fetch"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// data returns the way to the bytes, or an error wrapping meta.ErrStale if
// they are no longer those of the index.
func (c *content) data(ctx context.Context) (*fetch.Dataset, error) {
	if keeper := c.elsewhere(); keeper != "" && c.copied && c.held.attached() == nil {
		return nil, fmt.Errorf("%w: it is node %s; see: rankfs node ls", errKeeper, keeper)
	}
	d, err := c.held.attach(ctx, c.source, c.env)
	if err == nil {
		err = d.Check(ctx)
	}
	return d, err
}

// elsewhere is the node that has the source where it is not here: what is not
// remote lies on the disks of one. Empty if that is this one, or gone.
func (c *content) elsewhere() string {
	if keeper := c.keeper(); !c.remote && keeper != c.owners.Self && c.owners.Up(keeper) {
		return keeper
	}
	return ""
}

// keeper is the node on whose disks the source lies: the one that indexed it. If
// that is gone, one of the others makes a new copy of what was one.
func (c *content) keeper() string {
	if c.copied && c.origin != c.owners.Self && !c.owners.Up(c.origin) {
		return c.owners.Of(plan.Seed(c.id), 0, nil)
	}
	return c.origin
}

// openTime bounds how long an open waits for a source that is busy, as for a
// batch; pause is how often it looks.
const (
	openTime = 2 * time.Minute
	pause    = time.Second
)

// errKeeper says that the node that has the copy could not give of it. Soon it
// can, or another one takes its place.
var errKeeper = fmt.Errorf("source %w: another node has the copy of it", meta.ErrBusy)

// patiently does what needs a way to the bytes, be it by another node, as often as
// it takes: whoever has them may be busy for a while bringing them from where they
// are, or gone, and another one in its place a few seconds later.
func (c *content) patiently(ctx context.Context, account *stall.Open, do func() error) error {
	for deadline := time.Now().Add(openTime); ; {
		err := c.reach(ctx, account)
		again := errors.Is(err, meta.ErrBusy)
		if err == nil {
			err = do()
			again = errors.Is(err, errKeeper)
		}
		if !again {
			return err
		}
		if time.Now().After(deadline) {
			return meta.Worded(context.DeadlineExceeded, "source not ready after %v: %w", openTime, err)
		}
		if err := rest(ctx, account); err != nil {
			return err
		}
	}
}

func rest(ctx context.Context, account *stall.Open) error {
	defer account.End(account.For(stall.Source))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

// reach reports whether there is a way to the bytes, as far as is known here. That
// nobody answers is no reason to wait: what the cache has is served, and the rest
// is refused when it is fetched.
func (c *content) reach(ctx context.Context, account *stall.Open) error {
	if c.held.attached() == nil && c.elsewhere() == "" {
		defer account.End(account.For(stall.Source))
	}
	_, err := c.data(ctx)
	if errors.Is(err, meta.ErrUnavailable) || err != nil && c.elsewhere() != "" {
		return nil
	}
	return err
}

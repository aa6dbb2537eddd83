package pool

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/shuffle/placement"
)

// push gives a node something of a job, while it is up.
func (p peers) push(ctx context.Context, node string, by party, q wire.Request, feed wire.Feed) error {
	return p.whileUp(ctx, node, func(ctx context.Context) error {
		return p.pushes.inTurn(ctx, node, by, q, func() error {
			_, err := p.config.Wire.Push(ctx, node, q, feed)
			return err
		})
	})
}

// pull asks a node for something of a job, while it is up.
func (p peers) pull(ctx context.Context, node string, by party, q wire.Request, to wire.Sink) error {
	return p.whileUp(ctx, node, func(ctx context.Context) error {
		return p.pulls.inTurn(ctx, node, by, q, func() error { return p.config.Wire.Pull(ctx, node, q, to) })
	})
}

// errWentDown is why a node is not waited for any more.
var errWentDown = fmt.Errorf("node %w: it has gone down", meta.ErrUnavailable)

// whileUp asks a node that is up as long as the cluster says so, which is sooner than a node
// that is silent is given up.
func (p peers) whileUp(ctx context.Context, node string, ask func(context.Context) error) error {
	isUp := func() bool {
		return slices.ContainsFunc(p.config.Nodes(), func(n placement.Node) bool { return n.ID == node })
	}
	if !isUp() { // it is the last that has a copy
		return ask(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			changed := p.config.State.ClusterChanged()
			if !isUp() {
				cancel(errWentDown)
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
	defer watch.Wait()
	defer cancel(nil)
	err := ask(ctx)
	if err != nil && context.Cause(ctx) == errWentDown {
		return errWentDown
	}
	return err
}

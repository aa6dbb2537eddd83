package group

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta"
)

// Settled waits until the right nodes have votes, now that this node is in. Before that
// the cluster may have two voters for a moment, or four, and not survive the failures
// that it should. It does not wait for nodes that are dead.
func (g *Group) Settled(ctx context.Context) error {
	for {
		var settled bool
		err := g.AskLeader(ctx, callSettled, struct{}{}, &settled)
		switch {
		case errors.Is(err, meta.ErrNotExist): // at a leader of an earlier release
			return nil
		case err != nil || settled:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(g.times.pause):
		}
	}
}

// serveSettled tells a node whether Raft's configuration is what it should be, with
// that node in it, and agreed on.
func (g *Group) serveSettled(ctx context.Context, from string, _ json.RawMessage) (any, error) {
	if !g.Leads() {
		return nil, errNoLeader
	}
	if _, heard := g.seen.signs(from); !heard || g.next().do != nothing {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.times.patience)
	defer cancel()
	_, err := g.write(ctx, func() raft.Future { return g.raft.Barrier(g.times.patience) })
	return err == nil && g.next().do == nothing, err
}

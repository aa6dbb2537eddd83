package health

import (
	"context"
	"fmt"
	"time"

	"rankfs/test/cluster/internal/site"
)

// Wait waits until a cluster is as it was new: every namenode knows every
// datanode and is known by it, the first one serves, and no block is in danger.
// A datanode that was killed and started again is for some seconds only
// believed to be there.
func Wait(ctx context.Context, dial Dialer, s *site.Site) error {
	for i, h := range s.With(site.NameNode) {
		want := State{Active: i == 0, Live: len(s.With(site.DataNode))}
		if err := waitFor(ctx, dial, h, want); err != nil {
			return err
		}
	}
	for _, h := range s.With(site.DataNode) {
		if err := waitData(ctx, dial, h, len(s.With(site.NameNode))); err != nil {
			return err
		}
	}
	return nil
}

// waitData waits until a datanode has made itself known to n namenodes.
func waitData(ctx context.Context, dial Dialer, h site.Host, n int) error {
	address := fmt.Sprintf("%s:%d", h.IP, site.DataHTTP)
	for {
		known, err := askData(ctx, dial, address)
		if err == nil && known == n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for datanode %s: %w: %d of %d namenodes know it: %w", h.Name, context.Cause(ctx), known, n, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func waitFor(ctx context.Context, dial Dialer, h site.Host, want State) error {
	address := fmt.Sprintf("%s:%d", h.IP, site.NameHTTP)
	for {
		state, err := Ask(ctx, dial, address)
		// One that stands by leaves safe mode when it is to serve, and has not
		// heard of all blocks.
		if !want.Active && !state.Active {
			state.Safe, state.Missing, state.Corrupt = false, 0, 0
		}
		if err == nil && state == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for namenode %s: %w: it is %+v, not %+v: %w", h.Name, context.Cause(ctx), state, want, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

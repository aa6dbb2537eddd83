package health

import (
	"context"
	"fmt"

	"rankfs/test/cluster/internal/site"
	"rankfs/test/eventually"
)

// Wait waits until a cluster is as it was new: every namenode knows every
// datanode and the other way round, the first namenode serves, and no block is
// in danger.
func Wait(ctx context.Context, dial Dialer, s *site.Site) error {
	names, nodes := s.With(site.NameNode), s.With(site.DataNode)
	for i, h := range names {
		want := State{Active: i == 0, Live: len(nodes)}
		if err := eventually.Until(ctx, func() error { return nameNode(ctx, dial, h, want) }); err != nil {
			return fmt.Errorf("wait for %s: %w", h.Name, err)
		}
	}
	for _, h := range nodes {
		if err := eventually.Until(ctx, func() error { return dataNode(ctx, dial, h, names) }); err != nil {
			return fmt.Errorf("wait for %s: %w", h.Name, err)
		}
	}
	return nil
}

// nameNode says what is not as wanted with a namenode.
func nameNode(ctx context.Context, dial Dialer, h site.Host, want State) error {
	state, err := Ask(ctx, dial, fmt.Sprintf("%s:%d", h.IP, site.NameHTTP))
	if err != nil {
		return err
	}
	// One that stands by leaves safe mode when it is to serve, and has not heard
	// of all blocks.
	if !want.Active && !state.Active {
		state.Safe, state.Missing, state.Corrupt = false, 0, 0
	}
	if state != want {
		return fmt.Errorf("it is %+v, not %+v", state, want)
	}
	return nil
}

package cluster

import (
	"context"
	"fmt"

	"rankfs/test/cluster/internal/control"
	"rankfs/test/cluster/internal/health"
	"rankfs/test/cluster/internal/rpc"
	"rankfs/test/cluster/internal/site"
	"rankfs/test/eventually"
)

// FailOver makes the namenode active that is not. One that is dead need not
// agree; one that is frozen cannot be failed over from, kill it first.
func (c *namenodes) FailOver(ctx context.Context) error {
	names := c.NameNodes()
	next := names[1]
	switch active, err := c.leader(ctx); {
	case err != nil:
		return err
	case active == next:
		next = names[0]
	}
	return c.Activate(ctx, next)
}

// Activate makes a namenode the active one, and waits until it is.
func (c *namenodes) Activate(ctx context.Context, h *Host) error {
	if err := c.waitState(ctx, h, func(health.State) bool { return true }); err != nil {
		return err
	}
	active, err := c.leader(ctx)
	switch {
	case err != nil:
		return err
	case active == h:
		return nil
	case active != nil:
		if err := active.daemon(site.NameRPC).Standby(ctx); err != nil {
			return err
		}
	}
	if err := h.daemon(site.NameRPC).Active(ctx); err != nil {
		return err
	}
	return c.waitState(ctx, h, func(s health.State) bool { return s.Active })
}

// Ready waits until a namenode that was started has heard of the blocks: one that is made
// active before refuses reads.
func (c *namenodes) Ready(ctx context.Context, h *Host) error {
	return c.waitState(ctx, h, func(s health.State) bool { return !s.Safe })
}

// leader is the active namenode, nil if there is none: each has said so, or is dead.
func (c *namenodes) leader(ctx context.Context) (*Host, error) {
	for _, h := range c.NameNodes() {
		var state health.State
		err := eventually.Until(ctx, func() error {
			a, err := c.order(control.Order{Do: control.Ping, Host: h.Name, Daemon: NameNode})
			if err != nil || a.Pid == 0 {
				return err
			}
			state, err = h.state(ctx)
			return err
		})
		switch {
		case err != nil:
			return nil, fmt.Errorf("wait for namenode %s: %w", h.Name, err)
		case state.Active:
			return h, nil
		}
	}
	return nil, nil
}

// SafeMode turns the safe mode of all namenodes on or off.
func (c *namenodes) SafeMode(ctx context.Context, on bool) error {
	for _, h := range c.NameNodes() {
		if err := h.daemon(site.NameRPC).SafeMode(ctx, on); err != nil {
			return err
		}
	}
	return nil
}

// WaitLive waits until the active namenode knows of n live datanodes.
func (c *namenodes) WaitLive(ctx context.Context, n int) error {
	active, err := c.Active(ctx)
	if err != nil {
		return err
	}
	return c.waitState(ctx, active, func(s health.State) bool { return s.Live == n })
}

// WaitWell waits until all is as it was new, the daemons that were started again too:
// until a datanode is missed that was killed, a namenode counts it as live.
func (c *namenodes) WaitWell(ctx context.Context) error {
	return health.Wait(ctx, c.NameNodes()[0].DialContext, c.site)
}

// ReportBlocks has all datanodes tell the active namenode of all their blocks. Before they
// have, one that has become active deletes no replica that is one too many.
func (c *namenodes) ReportBlocks(ctx context.Context) error {
	for _, h := range c.DataNodes() {
		if err := h.daemon(site.DataRPC).ReportBlocks(ctx); err != nil {
			return err
		}
	}
	return nil
}

// waitState waits until a namenode is as wanted.
func (c *namenodes) waitState(ctx context.Context, h *Host, as func(health.State) bool) error {
	err := eventually.Until(ctx, func() error {
		state, err := h.state(ctx)
		if err == nil && !as(state) {
			err = fmt.Errorf("it is %+v", state)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for namenode %s: %w", h.Name, err)
	}
	return nil
}

// daemon is the host's daemon that takes calls at a port, asked from the host itself.
func (h *Host) daemon(port int) rpc.Daemon {
	return rpc.Daemon{Dial: h.DialContext, Address: fmt.Sprintf("%s:%d", h.IP, port)}
}

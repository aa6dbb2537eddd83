package cluster

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"rankfs/test/cluster/internal/health"
	"rankfs/test/cluster/internal/site"
)

// repairTime is what a repair may take: a dead datanode of a frozen namenode
// is forgotten after a quarter of it.
const repairTime = 90 * time.Second

// repair undoes all faults and waits until the cluster is as it was new.
func (c *Cluster) repair(ctx context.Context) error {
	for _, h := range c.Hosts() {
		if err := h.repair(); err != nil {
			return fmt.Errorf("repair host %s: %w", h.Name, err)
		}
	}
	if err := c.Activate(ctx, c.NameNodes()[0]); err != nil {
		return fmt.Errorf("make the first namenode active again: %w", err)
	}
	state, err := c.State(ctx)
	if err != nil {
		return err
	}
	if state.Safe {
		if err := c.SafeMode(ctx, false); err != nil {
			return err
		}
	}
	return health.Wait(ctx, c.NameNodes()[0].DialContext, c.site)
}

func (h *Host) repair() error {
	if err := h.LinkUp(); err != nil {
		return err
	}
	if err := h.LinkRate(0); err != nil {
		return err
	}
	for _, daemon := range h.Daemons {
		if err := h.Start(daemon); err != nil {
			return err
		}
		if err := h.Signal(daemon, syscall.SIGCONT); err != nil {
			return err
		}
	}
	return nil
}

// State is that of the namenode which is active.
func (c *Cluster) State(ctx context.Context) (health.State, error) {
	h, err := c.Active(ctx)
	if err != nil {
		return health.State{}, err
	}
	return h.state(ctx)
}

// state is what a namenode says, asked from its own host.
func (h *Host) state(ctx context.Context) (health.State, error) {
	return health.Ask(ctx, h.DialContext, fmt.Sprintf("%s:%d", h.IP, site.NameHTTP))
}

// Active is the namenode that serves.
func (c *Cluster) Active(ctx context.Context) (*Host, error) {
	var last error
	for _, h := range c.NameNodes() {
		state, err := h.state(ctx)
		if err == nil && state.Active {
			return h, nil
		}
		last = err
	}
	return nil, fmt.Errorf("no namenode is active: %w", last)
}

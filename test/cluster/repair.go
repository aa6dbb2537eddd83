package cluster

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"rankfs/test/cluster/internal/health"
	"rankfs/test/cluster/internal/site"
	"rankfs/test/eventually"
	"rankfs/test/hadoop"
)

// repairTime bounds a repair, in which several daemons may have to start.
const repairTime = hadoop.StartTime

// repair undoes all faults and waits until the cluster is as it was new.
func (c *Cluster) repair(ctx context.Context) error {
	for _, h := range c.Hosts() {
		if err := h.repair(); err != nil {
			return fmt.Errorf("repair host %s: %w", h.Name, err)
		}
	}
	if len(c.NameNodes()) == 0 {
		return nil
	}
	watch := hadoop.NewWatch()
	if err := c.serve(ctx); err != nil {
		return fmt.Errorf("%w; %v", err, watch)
	}
	return nil
}

// serve waits until HDFS is as it was new, with the first namenode active.
func (c *Cluster) serve(ctx context.Context) error {
	if err := c.Activate(ctx, c.NameNodes()[0]); err != nil {
		return fmt.Errorf("make the first namenode active again: %w", err)
	}
	state, err := c.awaitState(ctx)
	if err != nil {
		return err
	}
	if state.Safe {
		if err := c.SafeMode(ctx, false); err != nil {
			return err
		}
	}
	return c.WaitWell(ctx)
}

func (h *Host) repair() error {
	if err := h.LinkUp(); err != nil {
		return err
	}
	if err := errors.Join(h.LinkRate(0), h.LoseNothing()); err != nil {
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
func (c *namenodes) State(ctx context.Context) (health.State, error) {
	h, err := c.Active(ctx)
	if err != nil {
		return health.State{}, err
	}
	return h.state(ctx)
}

// awaitState is State for namenodes that have just begun, on a machine that may be busy.
func (c *namenodes) awaitState(ctx context.Context) (health.State, error) {
	var state health.State
	err := eventually.Until(ctx, func() (err error) {
		state, err = c.State(ctx)
		return err
	})
	return state, err
}

// state is the state that a namenode reports, asked from its own host.
func (h *Host) state(ctx context.Context) (health.State, error) {
	return health.Ask(ctx, h.DialContext, fmt.Sprintf("%s:%d", h.IP, site.NameHTTP))
}

// Rooms is the room that live datanodes have, by HOST:PORT as the active namenode calls
// them.
func (c *namenodes) Rooms(ctx context.Context) (map[string]health.Room, error) {
	h, err := c.Active(ctx)
	if err != nil {
		return nil, err
	}
	return health.Rooms(ctx, h.DialContext, fmt.Sprintf("%s:%d", h.IP, site.NameHTTP))
}

// Volumes are the directories in which the host's datanode has its blocks now.
func (h *Host) Volumes(ctx context.Context) ([]string, error) {
	return health.Volumes(ctx, h.DialContext, h.Host)
}

// ErrNoneActive says that no namenode serves; see FailOver.
var ErrNoneActive = errors.New("no namenode is active")

// Active is the namenode that serves.
func (c *namenodes) Active(ctx context.Context) (*Host, error) {
	var all []error
	for _, h := range c.NameNodes() {
		state, err := h.state(ctx)
		if err == nil && state.Active {
			return h, nil
		}
		all = append(all, err)
	}
	return nil, errors.Join(append(all, ErrNoneActive)...)
}

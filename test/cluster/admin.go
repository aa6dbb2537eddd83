package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"rankfs/test/cluster/internal/control"
	"rankfs/test/cluster/internal/health"
	"rankfs/test/cluster/internal/site"
	"rankfs/test/eventually"
)

// Hadoop's programs for administrators.
const (
	haAdmin  = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"
	dfsAdmin = "org.apache.hadoop.hdfs.tools.DFSAdmin"
)

// FailOver makes the namenode active that is not. One that is dead need not
// agree; one that is frozen cannot be failed over from, kill it first.
func (c *Cluster) FailOver(ctx context.Context) error {
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
func (c *Cluster) Activate(ctx context.Context, h *Host) error {
	if err := c.waitState(ctx, h, func(health.State) bool { return true }); err != nil {
		return err
	}
	active, err := c.leader(ctx)
	switch {
	case err != nil:
		return err
	case active == nil:
		// It need not ask the other one, which may be dead.
		err = h.tool(ctx, haAdmin, "-transitionToActive", "--forceactive", c.id(h))
	case active != h:
		err = h.tool(ctx, haAdmin, "-failover", c.id(active), c.id(h))
	}
	if err != nil {
		return err
	}
	return c.waitState(ctx, h, func(s health.State) bool { return s.Active })
}

// leader is the active namenode, nil if there is none: each has said so, or is dead.
func (c *Cluster) leader(ctx context.Context) (*Host, error) {
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

// id is the name of a namenode in hdfs haadmin.
func (c *Cluster) id(h *Host) string {
	for i, name := range c.NameNodes() {
		if name == h {
			return fmt.Sprintf("nn%d", i+1)
		}
	}
	panic(h.Name + " is no namenode")
}

// SafeMode turns the safe mode of all namenodes on or off.
func (c *Cluster) SafeMode(ctx context.Context, on bool) error {
	verb := "leave"
	if on {
		verb = "enter"
	}
	return c.NameNodes()[0].tool(ctx, dfsAdmin, "-safemode", verb)
}

// WaitLive waits until the active namenode knows of n live datanodes.
func (c *Cluster) WaitLive(ctx context.Context, n int) error {
	active, err := c.Active(ctx)
	if err != nil {
		return err
	}
	return c.waitState(ctx, active, func(s health.State) bool { return s.Live == n })
}

// WaitWell waits until all is as it was new, the daemons that were started again too:
// until a datanode is missed that was killed, a namenode counts it as live.
func (c *Cluster) WaitWell(ctx context.Context) error {
	return health.Wait(ctx, c.NameNodes()[0].DialContext, c.site)
}

// ReportBlocks has all datanodes tell the active namenode of all their blocks. Before they
// have, one that has become active deletes no replica that is one too many.
func (c *Cluster) ReportBlocks(ctx context.Context) error {
	errs := make([]error, len(c.DataNodes()))
	var all sync.WaitGroup
	for i, h := range c.DataNodes() {
		all.Go(func() {
			errs[i] = h.tool(ctx, dfsAdmin, "-triggerBlockReport", fmt.Sprintf("%s:%d", h.Name, site.DataRPC))
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// waitState waits until a namenode is as wanted.
func (c *Cluster) waitState(ctx context.Context, h *Host, as func(health.State) bool) error {
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

// tool runs one of Hadoop's programs on the host.
func (h *Host) tool(ctx context.Context, class string, args ...string) error {
	if out, err := h.Java(ctx, class, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("run %s %v on %s: %w: %s", class, args, h.Name, err, out)
	}
	return nil
}

package group

import (
	"context"
	"fmt"

	"github.com/hashicorp/raft"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// sign enters the sender in a command, where the cluster's version of commands has one.
// A command that founds or upgrades a cluster is of the newest version.
func (g *Group) sign(by state.Sender, c state.Command) {
	m := g.config.Machine
	version := m.Version()
	switch c.(type) {
	case *state.Found, *state.Upgrade:
		version = m.Speaks()
	}
	if version < state.Signed {
		by = state.Sender{}
	}
	c.Sign(by)
}

// may refuses a command whose sender has no right to it, before it is in the log. A
// leader that has just been elected may not have applied yet what the one before it has
// written, for instance that a node was admitted; so it catches up and checks again.
func (g *Group) may(ctx context.Context, c state.Command) error {
	if g.config.Machine.May(c) == nil {
		return nil
	}
	if _, err := g.write(ctx, func() raft.Future { return g.raft.Barrier(g.times.patience) }); err != nil {
		return err
	}
	return g.config.Machine.May(c)
}

// certified refuses a caller whose certificate is for another role than the one
// that the cluster has entered: the two must agree. A certificate of the release before
// has no such role.
func (g *Group) certified(ctx context.Context) error {
	c := callerOf(ctx)
	n, ok := g.config.Machine.Node(c.node)
	if !ok || n.Role == "" || c.role == trust.RoleNode || c.role == roleOf(n) {
		return nil
	}
	return fmt.Errorf("node %s %w: its certificate is for the role %s, and the cluster knows it as %s; restart it with a new certificate",
		c.node, meta.ErrDenied, c.role, n.Role)
}

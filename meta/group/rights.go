package group

import (
	"context"
	"fmt"

	"github.com/hashicorp/raft"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// sign says who sends a command, where the cluster's version of commands has
// that. Who founds a cluster has it of the newest version.
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

// may refuses a command before it is in the log whose sender has no right to it.
// A leader that has just begun may not know yet what the one before it has
// written, of a node that was let in for instance; so it makes sure.
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
// that the cluster has noted: neither of the two is enough. A certificate of the
// release before says no role.
func (g *Group) certified(ctx context.Context) error {
	c := callerOf(ctx)
	n, ok := g.config.Machine.Node(c.node)
	if !ok || n.Role == "" || c.role == trust.RoleNode || c.role == roleOf(n) {
		return nil
	}
	return fmt.Errorf("node %s %w: its certificate is for the role %s, and the cluster knows it as %s; restart it with a new certificate",
		c.node, meta.ErrDenied, c.role, n.Role)
}

package group

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// commands has the cluster execute commands: those of this node, which are
// executed here if it leads and sent to the leader if not, and those of other
// nodes, which this one executes only while it leads.
type commands struct {
	config   *Config
	standing *standing
	seen     *liveness
	calls    *calls
	replica  *replica
	leader   *leaderCalls
	executor *executor
}

// Do has the cluster execute a command, and returns when this node's machine has
// executed it too. It tries again when a leader is lost. That leader may have
// executed the command, which is why all are idempotent. An error that wraps
// meta.ErrUnavailable leaves open whether it was executed.
func (c *commands) Do(ctx context.Context, command state.Command) (state.Result, error) {
	return c.do(ctx, c.config.self(), command)
}

// Agree is Do, but does not wait for this node's machine, which hears of a command only
// when the leader writes the next one, or has written none for a while. A caller that reads
// that machine afterwards calls Ready first.
func (c *commands) Agree(ctx context.Context, command state.Command) (state.Result, error) {
	a, err := c.agree(ctx, c.config.self(), command)
	return a.Result, err
}

// DoFor is Do for a node that has asked this one, which leads. If this node leads no
// more, that node must ask the new leader itself, which would not believe this one.
func (c *commands) DoFor(ctx context.Context, node string, command state.Command) (state.Result, error) {
	if !c.replica.Leads() {
		return state.Result{}, errNoLeader
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.times.patience)
	defer cancel()
	a, err := c.executor.apply(ctx, state.Sender{Node: node}, command)
	if errors.Is(err, meta.ErrNoSpace) {
		err = fmt.Errorf("%w: %v", errNoLeader, err) // a leader with a full disk gives way to one with room
	}
	return a.Result, err
}

func (c *commands) do(ctx context.Context, by state.Sender, command state.Command) (state.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.times.patience)
	defer cancel()
	a, err := c.agree(ctx, by, command)
	if err != nil {
		return state.Result{}, err
	}
	return a.Result, c.replica.fsm.follow(ctx, a.Index)
}

func (c *commands) agree(ctx context.Context, by state.Sender, command state.Command) (applied, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.times.patience)
	defer cancel()
	var full error
	for {
		a, err := c.tryOnce(ctx, by, command)
		if err == nil {
			return a, nil
		}
		if c.standing.Removed() {
			return a, trust.ErrRemoved
		}
		if !errors.Is(err, meta.ErrUnavailable) {
			return a, err
		}
		if errors.Is(err, meta.ErrNoSpace) {
			full = err // a leader that cannot write leads no more, but that is not what is wrong
		}
		select {
		case <-ctx.Done():
			return a, cmp.Or(full, err)
		case <-time.After(c.config.times.pause):
		}
	}
}

// tryOnce executes a command here, if this node leads, or where the leader is.
func (c *commands) tryOnce(ctx context.Context, by state.Sender, command state.Command) (a applied, err error) {
	if c.replica.Leads() {
		return c.executor.apply(ctx, by, command)
	}
	c.config.sign(by, command) // for its form: the leader signs it anew, for the peer of the connection
	data, err := state.Encode(command)
	if err != nil {
		return a, c.early(err)
	}
	err = c.leader.toLeader(ctx, func(ctx context.Context, leader string) error {
		if leader == c.config.Self.ID {
			return errNoLeader // it has led
		}
		if err := c.calls.ask(ctx, leader, callApply, data, &a); err != nil {
			return err
		}
		if err := a.Result.Check(command); err != nil {
			return unavailable(ctx, leader, errors.New(err.Error())) // not corrupt: the command is sent once more
		}
		return nil
	})
	return a, err
}

// early is why a command cannot be said, at a node that may not know yet which
// commands its cluster takes: it will know more.
func (c *commands) early(err error) error {
	if c.standing.hasBegun() {
		return err
	}
	return fmt.Errorf("this node %w: it has not caught up with its cluster: %w", meta.ErrUnavailable, err)
}

// serveApply executes the command of a node that does not lead.
//
// A node that sends one is up: a daemon that says that it has begun must not be taken
// for dead because the leader has not called it yet.
func (c *commands) serveApply(ctx context.Context, from string, request json.RawMessage) (any, error) {
	data, err := decode[[]byte](request)
	if err != nil {
		return nil, err
	}
	command, err := c.config.Machine.Decode(data)
	if err != nil {
		return nil, err
	}
	if !c.replica.Leads() {
		return nil, errNoLeader
	}
	if err := c.certified(ctx); err != nil {
		return nil, err
	}
	c.seen.heard(from)
	ctx, cancel := context.WithTimeout(ctx, c.config.times.patience)
	defer cancel()
	return c.executor.apply(ctx, state.Sender{Node: from}, command)
}

// certified refuses a caller whose certificate is for another role than the one
// that the cluster has entered: the two must agree. A certificate of the release before
// has no such role.
func (c *commands) certified(ctx context.Context) error {
	caller := callerOf(ctx)
	n, ok := c.config.Machine.Node(caller.node)
	if !ok || n.Role == "" || caller.role == trust.RoleNode || caller.role == roleOf(n) {
		return nil
	}
	if caller.role == trust.RoleMember && n.Role == state.Operator {
		return fmt.Errorf("node %s %w: %w", caller.node, meta.ErrUnavailable, errFormer)
	}
	return fmt.Errorf("node %s %w: its certificate is for the role %s, and the cluster knows it as %s; restart it with a new certificate",
		caller.node, meta.ErrDenied, caller.role, n.Role)
}

// roleOf is the role of a node as its certificate is to say it.
func roleOf(n state.Node) trust.Role {
	switch n.Role {
	case state.Member:
		return trust.RoleMember
	case state.Operator:
		return trust.RoleOperator
	}
	return trust.RoleNode
}

package group

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

var errNoLeader = fmt.Errorf("cluster %w: it has no leader; a majority of the voters must be up; see: rankfs node ls", meta.ErrUnavailable)

// An applied command is one that the leader has executed.
type applied struct {
	Index  uint64       `json:"index"`
	Result state.Result `json:"result"`
}

// Do has the cluster execute a command, and returns when this node's machine has
// executed it too. It tries again when a leader is lost. That leader may have
// executed the command, which is why all are idempotent. An error that wraps
// meta.ErrUnavailable leaves open whether it was executed.
func (g *Group) Do(ctx context.Context, c state.Command) (state.Result, error) {
	return g.do(ctx, g.self(), c)
}

// self is this node as the sender of what is asked of it.
func (g *Group) self() state.Sender { return state.Sender{Node: g.config.Self.ID} }

// itself is this node as the leader, which does what is the leader's to do.
func (g *Group) itself() state.Sender { return state.Sender{Node: g.config.Self.ID, Leads: true} }

// DoFor is Do for a node that has asked this one, which leads. If this node leads no
// more, that node must ask the new leader itself, which would not believe this one.
func (g *Group) DoFor(ctx context.Context, node string, c state.Command) (state.Result, error) {
	if !g.Leads() {
		return state.Result{}, errNoLeader
	}
	ctx, cancel := context.WithTimeout(ctx, g.times.patience)
	defer cancel()
	a, err := g.apply(ctx, state.Sender{Node: node}, c)
	if errors.Is(err, meta.ErrNoSpace) {
		err = fmt.Errorf("%w: %v", errNoLeader, err) // a leader with a full disk gives way to one with room
	}
	return a.Result, err
}

func (g *Group) do(ctx context.Context, by state.Sender, c state.Command) (state.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, g.times.patience)
	defer cancel()
	var full error
	for {
		a, err := g.attempt(ctx, by, c)
		if err == nil {
			return a.Result, g.follow(ctx, a.Index)
		}
		if g.Removed() {
			return state.Result{}, trust.ErrRemoved
		}
		if !errors.Is(err, meta.ErrUnavailable) {
			return state.Result{}, err
		}
		if errors.Is(err, meta.ErrNoSpace) {
			full = err // a leader that cannot write leads no more, but that is not what is wrong
		}
		select {
		case <-ctx.Done():
			return state.Result{}, cmp.Or(full, err)
		case <-time.After(g.times.pause):
		}
	}
}

// attempt executes a command here, if this node leads, or where the leader is.
func (g *Group) attempt(ctx context.Context, by state.Sender, c state.Command) (a applied, err error) {
	if g.Leads() {
		return g.apply(ctx, by, c)
	}
	g.sign(by, c) // for its form: the leader signs it anew, for the peer of the connection
	data, err := state.Encode(c)
	if err != nil {
		return a, g.early(err)
	}
	err = g.toLeader(ctx, func(ctx context.Context, leader string) error {
		if leader == g.config.Self.ID {
			return errNoLeader // it has led
		}
		return g.calls.ask(ctx, leader, callApply, data, &a)
	})
	return a, err
}

// early is why a command cannot be said, at a node that may not know yet which
// commands its cluster takes: it will know more.
func (g *Group) early(err error) error {
	select {
	case <-g.home.begun:
		return err
	default:
		return fmt.Errorf("this node %w: it has not caught up with its cluster: %w", meta.ErrUnavailable, err)
	}
}

// maxWrites bounds the commands that this node has put into its log and that are not
// executed yet, even if no caller waits for them any more.
const maxWrites = 1024

// apply executes the command of a sender as the leader, with the leader's time.
func (g *Group) apply(ctx context.Context, by state.Sender, c state.Command) (a applied, err error) {
	g.sign(by, c)
	if err := g.may(ctx, c); err != nil {
		return a, err
	}
	done, err := g.countVotes(ctx, c)
	if err != nil {
		return a, err
	}
	defer done()
	c.Stamp(g.config.Now().UnixNano())
	data, err := state.Encode(c)
	if err != nil {
		return a, err
	}
	future, err := g.write(ctx, func() raft.Future { return g.raft.Apply(data, g.times.patience) })
	if err != nil {
		return a, err
	}
	f := future.(raft.ApplyFuture)
	o := f.Response().(outcome)
	if o.err != nil {
		return a, o.err
	}
	return applied{f.Index(), o.result}, nil
}

// write has Raft do something that goes through the log. Where followers answer but
// cannot write, their disks full, Raft waits for ever; the caller does not.
func (g *Group) write(ctx context.Context, begin func() raft.Future) (raft.Future, error) {
	select {
	case g.writes <- struct{}{}:
	default:
		return nil, fmt.Errorf("the leader %w: %d commands wait to be written; are disks full? see: rankfs node ls", meta.ErrUnavailable, maxWrites)
	}
	future := begin()
	written := make(chan error, 1)
	g.written.Go(func() { // until Raft is shut down at the latest
		written <- future.Error()
		<-g.writes
	})
	select {
	case err := <-written:
		return future, leaderless(err)
	case <-ctx.Done():
		return nil, fmt.Errorf("write to the cluster's log: %w: no majority of the voters has written it: %w", meta.ErrUnavailable, ctx.Err())
	}
}

// leaderless makes what Raft says when it cannot now into an error that wraps
// meta.ErrUnavailable.
func leaderless(err error) error {
	if err == nil {
		return nil
	}
	for _, passing := range []error{
		raft.ErrNotLeader, raft.ErrLeadershipLost, raft.ErrLeadershipTransferInProgress,
		raft.ErrEnqueueTimeout, raft.ErrAbortedByRestore, raft.ErrRaftShutdown,
	} {
		if errors.Is(err, passing) {
			return fmt.Errorf("%w (%w)", errNoLeader, err)
		}
	}
	return fmt.Errorf("write to the cluster's log: %w (%w)", err, meta.ErrUnavailable)
}

// follow waits until this node has executed what the leader has.
func (g *Group) follow(ctx context.Context, index uint64) error {
	for g.config.Machine.Summary().Applied < index {
		if err := g.config.Machine.Err(); err != nil {
			return err // it goes no further
		}
		select {
		case <-time.After(g.times.follow):
		case <-ctx.Done():
			return fmt.Errorf("this node %w: it is behind the cluster: %w", meta.ErrUnavailable, ctx.Err())
		}
	}
	return nil
}

// serveApply executes the command of a node that does not lead.
//
// A node that sends one is up: a daemon that says that it has begun must not be taken
// for dead because the leader has not called it yet.
func (g *Group) serveApply(ctx context.Context, from string, request json.RawMessage) (any, error) {
	data, err := decode[[]byte](request)
	if err != nil {
		return nil, err
	}
	c, err := state.Decode(data)
	if err != nil {
		return nil, err
	}
	if !g.Leads() {
		return nil, errNoLeader
	}
	if err := g.certified(ctx); err != nil {
		return nil, err
	}
	g.seen.heard(from, time.Now())
	ctx, cancel := context.WithTimeout(ctx, g.times.patience)
	defer cancel()
	return g.apply(ctx, state.Sender{Node: from}, c)
}

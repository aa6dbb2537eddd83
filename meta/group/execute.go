package group

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/raft"

	"rankfs/meta"
	"rankfs/meta/state"
)

// An applied command is one that the leader has executed.
type applied struct {
	Index  uint64       `json:"index"`
	Result state.Result `json:"result"`
}

// An executor has commands executed as the leader. Each gets its sender and the leader's
// time here, and what its sender has no right to does not come into the log. A command
// by which a node is to leave holds the ballot from the count of the votes until it is
// executed.
type executor struct {
	config  *Config
	replica *replica
	prober  *prober
	ballot  ballot
}

// A ballot is held while the set of voters changes, or a voter leaves: the decision on
// the one supposes that the other stays as it is. It is held over writes to the log.
type ballot chan struct{}

// take waits for the ballot.
func (b ballot) take(ctx context.Context) error {
	select {
	case b <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b ballot) release() { <-b }

// apply executes the command of a sender, with the leader's time.
func (e *executor) apply(ctx context.Context, by state.Sender, c state.Command) (a applied, err error) {
	e.config.sign(by, c)
	if err := e.may(ctx, c); err != nil {
		return a, err
	}
	done, err := e.countVotes(ctx, c)
	if err != nil {
		return a, err
	}
	defer done()
	state.Stamp(c, e.config.Now().UnixNano())
	data, err := state.Encode(c)
	if err != nil {
		return a, err
	}
	entry := raft.Log{Data: data}
	if e.config.Machine.Fleeting(c) {
		entry.Extensions = fleeting
	}
	future, err := e.replica.write(ctx, func() raft.Future { return e.replica.raft.ApplyLog(entry, e.config.times.patience) })
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

// sign enters the sender in a command, and the cluster's version of commands.
// A command that founds or upgrades a cluster is of the newest version.
func (c *Config) sign(by state.Sender, command state.Command) {
	version := c.Machine.Version()
	switch command.(type) {
	case *state.Found, *state.Upgrade:
		version = c.Machine.Speaks()
	}
	state.Sign(command, by, version)
}

// may refuses a command whose sender has no right to it, before it is in the log. A
// leader that has just been elected may not have applied yet what the one before it has
// written, for instance that a node was admitted; so it catches up and checks again.
func (e *executor) may(ctx context.Context, c state.Command) error {
	if e.config.Machine.May(c) == nil {
		return nil
	}
	if err := e.replica.confirm(ctx); err != nil {
		return err
	}
	return e.config.Machine.May(c)
}

// countVotes enters the voters in a command that they matter to, and refuses one by which
// a node is to leave if that node cannot leave. No vote changes until done is called, so
// that the voters are the same when the command is executed.
func (e *executor) countVotes(ctx context.Context, c state.Command) (done func(), err error) {
	ballot, ok := c.(state.Ballot)
	if !ok {
		return func() {}, nil
	}
	if err := e.ballot.take(ctx); err != nil {
		return nil, fmt.Errorf("the leader %w: it is changing who votes: %w", meta.ErrUnavailable, err)
	}
	voters := e.replica.voters()
	ballot.Vote(voters)
	if leave, ok := c.(state.Leave); ok {
		if err := e.letsGo(ctx, leave, len(voters)); err != nil {
			e.ballot.release()
			return nil, err
		}
	}
	if !e.config.Machine.NotesVoters() {
		ballot.Vote(nil)
	}
	return e.ballot.release, nil
}

// letsGo refuses a command by which a voter is to leave that is needed. A voter that is
// said to be up may have died since: those that are counted on have to answer now.
func (e *executor) letsGo(ctx context.Context, c state.Leave, voters int) error {
	rest, err := e.config.Machine.LetsGo(c)
	if err != nil || len(rest) == 0 {
		return err
	}
	majority := voters/2 + 1
	silent := e.prober.silent(ctx, rest, majority)
	answered := len(rest) - len(silent)
	if answered >= majority {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var missing []string
	for _, id := range silent {
		n, _ := e.config.Machine.Node(id)
		missing = append(missing, n.Host+" ("+n.Addr+")")
	}
	slices.Sort(missing)
	return fmt.Errorf("node %s %w: the other voters that answer, %d of %d, are no majority; these do not: %s; start them, or remove them first; see: rankfs node ls",
		c.Leaver(), meta.ErrBusy, answered, voters, strings.Join(missing, ", "))
}

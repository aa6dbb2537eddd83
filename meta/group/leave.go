package group

import (
	"context"
	"fmt"
	"slices"

	"rankfs/meta"
	"rankfs/meta/state"
)

// countVotes enters the voters in a command by which a node is to leave, and refuses the
// command if that node cannot leave. No vote changes until done is called, so that the
// voters are the same when the command is executed.
func (g *Group) countVotes(ctx context.Context, c state.Command) (done func(), err error) {
	leave, ok := c.(state.Leave)
	if !ok {
		return func() {}, nil
	}
	select {
	case g.ballot <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("the leader %w: it is changing who votes: %w", meta.ErrUnavailable, ctx.Err())
	}
	done = func() { <-g.ballot }
	var voters []string
	for id, s := range g.servers() {
		if isVoter(s) {
			voters = append(voters, id)
		}
	}
	slices.Sort(voters)
	leave.Vote(voters)
	if err := g.config.Machine.LetsGo(leave); err != nil {
		done()
		return nil, err
	}
	if !g.config.Machine.NotesVoters() {
		leave.Vote(nil)
	}
	return done, nil
}

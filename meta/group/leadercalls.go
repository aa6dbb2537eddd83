package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"rankfs/meta"
	"rankfs/meta/trust"
)

// leaderCalls are calls to the node that leads, whichever it is. One that is under way
// when the leader changes is given up: it is asked again of the next, or it is said that
// there is none.
type leaderCalls struct {
	config   *Config
	standing *standing
	calls    *calls
	replica  *replica
}

// AskLeader calls the leader, which may be this node, and tries again with the next one
// if it is lost. So the request must be idempotent.
func (l *leaderCalls) AskLeader(ctx context.Context, name string, request, result any) error {
	ctx, cancel := context.WithTimeout(ctx, l.config.times.patience)
	defer cancel()
	for {
		err := l.askOnce(ctx, name, request, result)
		if err != nil && l.standing.Removed() {
			return trust.ErrRemoved
		}
		if err == nil || !errors.Is(err, meta.ErrUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(l.config.times.pause):
		}
	}
}

func (l *leaderCalls) askOnce(ctx context.Context, name string, request, result any) error {
	return l.toLeader(ctx, func(ctx context.Context, leader string) error {
		return l.calls.Ask(ctx, leader, name, request, result)
	})
}

// toLeader asks the leader something, for as long as it leads.
func (l *leaderCalls) toLeader(ctx context.Context, ask func(ctx context.Context, leader string) error) error {
	leadership := l.replica.leadership.now()
	leader := l.replica.Leader()
	if leader == "" {
		return l.unled()
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(leadership, cancel)()
	err := ask(within, leader)
	// The leadership ended and cancelled it: the caller did not, though its deadline may have
	// passed by now.
	if err != nil && errors.Is(within.Err(), context.Canceled) && !errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%w (node %s led)", errNoLeader, leader)
	}
	if errors.Is(err, meta.ErrNoSpace) {
		err = fmt.Errorf("%w (%w)", err, meta.ErrUnavailable) // for now: it leads no more
	}
	return err
}

// late is why the leader has not answered before a caller's time was over.
func (l *leaderCalls) late(ctx context.Context) error {
	leader := l.replica.Leader()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case leader == "":
		return l.unled()
	}
	return unavailable(ctx, leader, ctx.Err())
}

// unled is errNoLeader, with the nodes that do not answer, and whether the clocks are
// the cause.
func (l *leaderCalls) unled() error {
	err := errNoLeader
	if missing := l.Missing(); len(missing) > 0 {
		err = fmt.Errorf("cluster %w: it has no leader; a majority of the voters must be up, but these do not answer: %s; see: rankfs node ls",
			meta.ErrUnavailable, strings.Join(missing, ", "))
	}
	if why := l.standing.alien.Load(); why != nil {
		return fmt.Errorf("%w: %v", err, *why)
	}
	return err
}

// Missing are the voters, by host and address, that did not answer when this node
// looked for a leader last; none while there is one.
func (l *leaderCalls) Missing() (missing []string) {
	voters := l.replica.voters()
	for _, id := range l.Silent() {
		if n, ok := l.config.Machine.Node(id); ok && slices.Contains(voters, id) {
			missing = append(missing, fmt.Sprintf("%s (%s)", n.Host, n.Addr))
		}
	}
	slices.Sort(missing)
	return missing
}

// Silent are the nodes that did not answer when this one looked for a leader
// last; none while there is a leader, which knows better.
func (l *leaderCalls) Silent() []string {
	silent := l.standing.silent.Load()
	if silent == nil || l.replica.Leader() != "" {
		return nil
	}
	return *silent
}

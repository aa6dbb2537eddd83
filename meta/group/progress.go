package group

import (
	"context"
	"encoding/json"

	"rankfs/meta/state"
)

// A progress says how far a node is, and waits until this one is as far as the cluster.
type progress struct {
	config  *Config
	replica *replica
	leader  *leaderCalls
}

// Ready waits until this node knows what the cluster knew when it was asked, if
// there is a leader to ask before ctx ends.
func (p *progress) Ready(ctx context.Context) error {
	_, err := p.catchUp(ctx)
	return err
}

// Lasts has all that this node knows outlive a power failure. A command by which files in
// memory are known, and which went with them, or by which something is removed, may have been
// answered before that: see state.Machine.Fleeting.
func (p *progress) Lasts() error { return p.replica.store.log.sync() }

// catchUp is Ready, and returns what the leader has said.
func (p *progress) catchUp(ctx context.Context) (now pulse, err error) {
	if err := p.leader.AskLeader(ctx, callNow, struct{}{}, &now); err != nil {
		return now, err
	}
	return now, p.replica.follow(ctx, now.Applied)
}

// serveNow says how far the cluster is. A leader that was stopped for a while may
// not know yet that another leads, and a new one not what the one before it had
// written.
func (p *progress) serveNow(ctx context.Context, _ string, _ json.RawMessage) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.times.patience)
	defer cancel()
	if err := p.replica.upToDate(ctx); err != nil {
		return nil, err
	}
	return p.config.pulse(), nil
}

// servePulse says that this node is there, and who leads.
func (p *progress) servePulse(context.Context, string, json.RawMessage) (any, error) {
	now := p.config.pulse()
	if p.config.Machine.Version() >= state.Signed {
		now.Leader = p.replica.Leader()
	}
	return now, nil
}

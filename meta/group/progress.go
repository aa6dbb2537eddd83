package group

import (
	"context"
	"encoding/json"

	"rankfs/meta/state"
)

// A progress says how far a node is, and waits until this one is as far as the cluster.
//
// Each name that a program asks for and that this node does not know is a question to the
// leader. Those that come at a time are one: see rounds.
type progress struct {
	config  *Config
	replica *replica
	leader  *leaderCalls
	rounds  rounds
	ended   context.Context    // when the leader is to be asked no more
	end     context.CancelFunc // ends it
}

func newProgress(c *Config, r *replica, l *leaderCalls) *progress {
	p := &progress{config: c, replica: r, leader: l}
	p.ended, p.end = context.WithCancel(context.Background())
	p.rounds.ask = func() (now heartbeat, err error) {
		err = l.AskLeader(p.ended, callNow, struct{}{}, &now)
		if err != nil && p.ended.Err() != nil {
			err = errEnds // no caller has given up
		}
		return now, err
	}
	return p
}

// close gives up what the leader is asked.
func (p *progress) close() {
	p.end()
	p.rounds.close()
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
func (p *progress) catchUp(ctx context.Context) (now heartbeat, err error) {
	now, ended, err := p.rounds.join(ctx)
	if !ended {
		err = p.leader.late(ctx)
	}
	if err != nil {
		return now, err
	}
	return now, p.replica.fsm.follow(ctx, now.Applied)
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
	now := p.config.heartbeat()
	var err error
	now.Applied, err = p.replica.lastAgreed()
	return now, err
}

// serveHeartbeat says that this node is there, and who leads.
func (p *progress) serveHeartbeat(context.Context, string, json.RawMessage) (any, error) {
	now := p.config.heartbeat()
	if p.config.Machine.Version() >= state.Signed {
		now.Leader = p.replica.Leader()
	}
	return now, nil
}

package group

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta"
)

// A membership brings Raft's configuration to what it should be, while this node leads:
// what the cluster's state and the liveness lead to, by the rules of next.
//
// Of two goroutines that look at the voters, to change them or to let one leave, one
// waits for the ballot; so a change is decided by the configuration that it changes.
type membership struct {
	config   *Config
	seen     *liveness
	replica  *replica
	leader   *leaderCalls
	ballot   ballot
	keys     *keys
	warnings *warnings
}

// AwaitVotes waits until the right nodes have votes, now that this node is in. Before that
// the cluster may have two voters for a moment, or four, and not survive the failures
// that it should. It does not wait for nodes that are dead.
func (m *membership) AwaitVotes(ctx context.Context) error {
	for {
		var given bool
		err := m.leader.AskLeader(ctx, callVotes, struct{}{}, &given)
		switch {
		case errors.Is(err, meta.ErrNotExist): // at a leader of an earlier release
			return nil
		case err != nil || given:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(m.config.times.pause):
		}
	}
}

// serveVotes tells a node whether Raft's configuration is as it should be, with
// that node in it, and agreed on.
func (m *membership) serveVotes(ctx context.Context, from string, _ json.RawMessage) (any, error) {
	if !m.replica.Leads() {
		return nil, errNoLeader
	}
	if _, heard := m.seen.signs(from); !heard || m.next().do != nothing {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, m.config.times.patience)
	defer cancel()
	err := m.replica.confirm(ctx)
	m.spread(ctx, "")
	return err == nil && m.next().do == nothing, err
}

// spread waits until the nodes that vote and live, and one that is to get a vote, have the log
// and in it Raft's configuration; for times.look at most, as a disk may be full. Raft takes no
// vote for a node of which it does not know that it votes, so two of three that do not know it
// of each other would wait for a leader that has died.
func (m *membership) spread(ctx context.Context, to string) {
	ctx, cancel := context.WithTimeout(ctx, m.config.times.look)
	defer cancel()
	for last := m.replica.raft.LastIndex(); !m.isSpread(to, last); {
		select {
		case <-ctx.Done():
			return
		case <-time.After(m.config.times.pause / 10):
		}
	}
}

func (m *membership) isSpread(to string, last uint64) bool {
	term := m.replica.raft.CurrentTerm()
	for id, s := range m.replica.servers() {
		if id != m.config.Self.ID && (isVoter(s) || id == to) && m.seen.live(id) && !m.replica.transport.has(raft.ServerID(id), term, last) {
			return false
		}
	}
	return true
}

// maxChanges bounds the changes of one round.
const maxChanges = 8

// reconcile makes changes towards the configuration that Raft should have. One
// follows the other at once: between the first vote given and the last a cluster
// may have an even number, which outlives no more than one less.
func (m *membership) reconcile(ctx context.Context) {
	for range maxChanges {
		switch c, err := m.changeNext(ctx); {
		case err == nil && c.do == nothing:
			m.stepDown(ctx)
			return
		case !m.warnings.told("members of the cluster not changed", c.id, err):
			return
		}
	}
}

// changeNext makes the change that is most needed. It holds the ballot, so that no voter
// leaves meanwhile.
func (m *membership) changeNext(ctx context.Context) (change, error) {
	if err := m.ballot.take(ctx); err != nil {
		return change{}, err
	}
	defer m.ballot.release()
	c := m.next()
	if c.do == nothing {
		return c, nil
	}
	return c, m.change(ctx, c)
}

// next is the change that Raft's configuration needs, as this node, leading, sees it.
func (m *membership) next() change {
	servers := m.replica.servers()
	byID := make(map[string]member)
	for id, s := range servers {
		byID[id] = member{id: id, server: true, voter: isVoter(s), live: m.seen.live(id)}
	}
	for _, n := range m.config.Machine.Nodes() {
		one := byID[n.ID]
		one.id, one.admit, one.idle, one.lost, one.since = n.ID, true, n.Drained, m.seen.isLost(n.ID), uint64(n.Admitted)
		one.live = m.seen.live(n.ID)
		_, one.heard = m.seen.signs(n.ID)
		one.server = one.server && servers[n.ID].Address == raftAddress(n.ID, n.Addr)
		byID[n.ID] = one
	}
	return next(m.config.Self.ID, slices.Collect(maps.Values(byID)))
}

// change makes a change. A node that gets a vote has the authority's key before.
func (m *membership) change(ctx context.Context, c change) error {
	n, _ := m.config.Machine.Node(c.id)
	switch c.do {
	case promote:
		if m.seen.live(c.id) { // or it gets the key when it is back
			if err := m.keys.entrust(ctx, c.id); err != nil {
				return err
			}
		}
		m.spread(ctx, c.id)
		m.config.Log.Info("node becomes a voter", "node", c.id, "host", n.Host)
	case demote:
		m.config.Log.Info("node is a voter no more", "node", c.id, "host", n.Host)
	}
	err := m.replica.reconfigure(ctx, c, n)
	if c.do == remove {
		m.replica.transport.called(raft.ServerID(c.id)) // ends the waits for it
	}
	return err
}

// stepDown gives the lead away if this node is drained.
func (m *membership) stepDown(ctx context.Context) {
	if n, _ := m.config.Machine.Node(m.config.Self.ID); n.Drained && len(m.replica.servers()) > 1 {
		_ = m.replica.giveAway(ctx) // tried again at the next tick
	}
}

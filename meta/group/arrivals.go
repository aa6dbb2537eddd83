package group

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/raft"

	"rankfs/meta"
	"rankfs/meta/state"
)

// arrivals are nodes that say hello. The leader has the cluster note each that was
// started; any other node names the leader.
type arrivals struct {
	config   *Config
	seen     *liveness
	replica  *replica
	executor *executor
}

// serveHello hears of another node.
func (a *arrivals) serveHello(ctx context.Context, from string, request json.RawMessage) (any, error) {
	h, err := decode[hello](request)
	if err != nil {
		return nil, err
	}
	if a.replica.Leads() {
		ctx, cancel := context.WithTimeout(ctx, a.config.times.patience)
		defer cancel()
		if h.Lost {
			return a.release(ctx, from)
		}
		return a.begin(ctx, from, h)
	}
	leader, ok := a.config.Machine.Node(a.replica.Leader())
	if !ok || leader.ID == from {
		return nil, errNoLeader
	}
	return welcome{Leader: leader.ID, Addr: leader.Addr}, nil
}

// begin enters that a node was started, and has Raft send it the log at once: on new
// connections, if the old ones lead to its previous process, or nowhere.
func (a *arrivals) begin(ctx context.Context, id string, h hello) (welcome, error) {
	a.seen.found(id)
	before, _ := a.config.Machine.Node(id)
	switch {
	case id == a.config.Self.ID:
	case h.Deaf || before.Life != 0 && before.Life != h.Life:
		a.replica.transport.called(raft.ServerID(id))
	default:
		a.replica.transport.heard(raft.ServerID(id))
	}
	begin := &state.Begin{ID: id, Addr: h.Addr, Life: h.Life}
	if a.config.Machine.Version() >= state.Signed && h.Host != "" && !meta.SameHost(h.Host, before.Host) {
		begin.Called = h.Host
	}
	done, err := a.executor.apply(ctx, state.Sender{Node: id}, begin)
	return welcome{Applied: done.Index}, err
}

// release lets go of a replica whose log is lost, and with it the votes it gave and the
// entries it acknowledged; so it must be out of Raft's configuration, and all nodes must
// know, before it begins with an empty log.
func (a *arrivals) release(ctx context.Context, id string) (welcome, error) {
	if _, ok := a.config.Machine.Node(id); !ok {
		return welcome{}, meta.Worded(meta.ErrNotExist, "node %s does not exist in this cluster", id)
	}
	a.seen.lose(id)
	if a.replica.servers()[id].ID != "" {
		return welcome{Wait: true}, nil
	}
	// It is out of what this node has written. When that is agreed on, it is out.
	if err := a.replica.confirm(ctx); err != nil {
		return welcome{}, err
	}
	return welcome{Wait: a.replica.servers()[id].ID != ""}, nil
}

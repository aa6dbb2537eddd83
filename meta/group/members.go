package group

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// A pulse is how a node says that it is there.
type pulse struct {
	Speaks  int    `json:"speaks,omitempty"` // the newest version of commands that it understands, if not the oldest
	Applied uint64 `json:"applied"`
	Signs   bool   `json:"signs,omitempty"` // has the authority's key
	Clock   int64  `json:"clock"`           // what its clock shows, in nanoseconds since 1970
}

func (g *Group) handlers() map[string]Handler {
	all := map[string]Handler{
		callApply:   g.serveApply,
		callAdmit:   g.serveAdmit,
		callHello:   g.serveHello,
		callEntrust: g.serveEntrust,
		callKey:     g.serveKey,
		callForget:  g.serveForget,
		callNow:     g.serveNow,
		callSettled: g.serveSettled,
		callPulse: func(context.Context, string, json.RawMessage) (any, error) {
			return g.pulse(), nil
		},
	}
	for name, h := range g.config.Handlers {
		all[name] = h
	}
	return all
}

// Leads reports whether this node leads the cluster, as far as it knows.
func (g *Group) Leads() bool { return g.raft.State() == raft.Leader }

// Leading is Leads, with the term in which that is.
func (g *Group) Leading() (term uint64, leads bool) { return g.raft.CurrentTerm(), g.Leads() }

// Leader is the node that leads, empty if none is known.
func (g *Group) Leader() string {
	_, id := g.raft.LeaderWithID()
	return string(id)
}

// Self is this node's id.
func (g *Group) Self() string { return g.config.Self.ID }

// AskLeader calls the leader, which may be this node, and tries again with the next one
// if it is lost. So the request must be idempotent.
func (g *Group) AskLeader(ctx context.Context, name string, request, result any) error {
	ctx, cancel := context.WithTimeout(ctx, g.times.patience)
	defer cancel()
	for {
		err := g.askOnce(ctx, name, request, result)
		if err != nil && g.Removed() {
			return trust.ErrRemoved
		}
		if err == nil || !errors.Is(err, meta.ErrUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(g.times.pause):
		}
	}
}

func (g *Group) askOnce(ctx context.Context, name string, request, result any) error {
	return g.toLeader(ctx, func(ctx context.Context, leader string) error {
		return g.Ask(ctx, leader, name, request, result)
	})
}

// Ask calls a node, which may be this one.
func (g *Group) Ask(ctx context.Context, id, name string, request, result any) error {
	if id != g.config.Self.ID {
		return g.calls.ask(ctx, id, name, request, result)
	}
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := g.calls.handlers[name](ctx, id, data)
	if err != nil || result == nil {
		return err
	}
	if data, err = json.Marshal(answer); err != nil {
		return err
	}
	return json.Unmarshal(data, result)
}

// Dial connects to a node's port.
func (g *Group) Dial(ctx context.Context, id string, p trust.Protocol) (net.Conn, error) {
	addr, err := g.address(id)
	if err != nil {
		return nil, err
	}
	conn, err := g.config.Port.Dial(ctx, addr, id, p)
	g.refused(err)
	return conn, err
}

func (g *Group) dialCall(ctx context.Context, id string) (net.Conn, error) {
	return g.Dial(ctx, id, trust.Call)
}

func (g *Group) dialRaft(ctx context.Context, addr, id string) (net.Conn, error) {
	return g.courier.hang(ctx, raft.ServerID(id), func(ctx context.Context) (net.Conn, error) {
		conn, err := g.config.Port.Dial(ctx, addr, id, trust.Raft)
		g.refused(err)
		return conn, err
	})
}

// A Status is how a node sees its cluster.
type Status struct {
	Cluster string   `json:"cluster"`
	Leader  string   `json:"leader,omitempty"` // none if no majority is up
	Term    uint64   `json:"term"`
	Last    uint64   `json:"last"`              // index of this node's log
	Removed bool     `json:"removed,omitempty"` // this node was taken out of the cluster
	Applied uint64   `json:"applied"`
	Members []Member `json:"members"`
}

// A Member is a node as this one sees it.
type Member struct {
	state.Node
	Voter bool    `json:"voter"`
	Lag   *uint64 `json:"lag,omitempty"` // commands behind the leader, where the leader is asked
}

// Status is how this node sees the cluster.
func (g *Group) Status() Status {
	m := g.config.Machine
	s := Status{
		Cluster: m.Summary().Cluster.ID, Leader: g.Leader(), Term: g.raft.CurrentTerm(),
		Last: g.raft.LastIndex(), Applied: g.raft.AppliedIndex(), Removed: g.Removed(),
	}
	servers := g.servers()
	for _, n := range m.Nodes() {
		member := Member{Node: n, Voter: isVoter(servers[n.ID])}
		if _, applied := g.seen.of(n.ID); g.Leads() && applied > 0 {
			lag := max(s.Applied, applied) - applied
			member.Lag = &lag
		}
		s.Members = append(s.Members, member)
	}
	return s
}

// Ready waits until this node knows what the cluster knew when it was asked, if
// there is a leader to ask before ctx ends.
func (g *Group) Ready(ctx context.Context) error {
	var p pulse
	if err := g.AskLeader(ctx, callNow, struct{}{}, &p); err != nil {
		return err
	}
	return g.follow(ctx, p.Applied)
}

// serveNow says how far the cluster is. A leader that was stopped for a while may
// not know yet that another leads, and a new one not what the one before it had
// written: both know when a majority has written something of theirs.
func (g *Group) serveNow(ctx context.Context, _ string, _ json.RawMessage) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, g.times.patience)
	defer cancel()
	if _, err := g.write(ctx, func() raft.Future { return g.raft.Barrier(g.times.patience) }); err != nil {
		return nil, err
	}
	return g.pulse(), nil
}

func (g *Group) pulse() pulse {
	m := g.config.Machine
	return pulse{Speaks: m.Speaks(), Applied: m.Summary().Applied, Signs: g.config.Authority.CanSign(), Clock: g.config.Now().UnixNano()}
}

// Close leaves, until this node is started again. What it knows is on disk.
func (g *Group) Close() error {
	g.cancel()
	g.store.log.giveUp() // or what asks Raft something would wait for a disk
	g.done.Wait()
	errs := []error{g.office.close(), g.calls.close()}
	g.courier.end()
	if g.config.Machine.Summary().Applied > 0 {
		_ = g.raft.Snapshot().Error() // so that a node that is alone when it wakes up knows more; there may be nothing new
	}
	errs = append(errs, g.endRaft().Error())
	g.written.Wait()
	g.reign.end()
	errs = append(errs, g.store.close())
	return errors.Join(errs...)
}

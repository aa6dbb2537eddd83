package group

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// An admission lets nodes in. Any node passes an application on; the leader decides: it
// enters a node that shows a token, and signs for every node that is entered, with the
// role that the cluster knows.
type admission struct {
	config   *Config
	seen     *liveness
	leader   *leaderCalls
	executor *executor
}

// certify has the leader admit a node.
func (a *admission) certify(ctx context.Context, from application) (certificate []byte, err error) {
	err = a.leader.AskLeader(ctx, callAdmit, from, &certificate)
	return certificate, err
}

// serveAdmit enters a node, or finds that it is entered, and signs for it.
func (a *admission) serveAdmit(ctx context.Context, from string, request json.RawMessage) (any, error) {
	applies, err := decode[application](request)
	if err != nil {
		return nil, err
	}
	r, err := trust.ParseRequest(applies.Request)
	if err != nil {
		return nil, err
	}
	n := state.Node{ID: r.Node, Host: r.Host, Addr: applies.Addr, Key: trust.KeyID(r.Key)}
	if known, ok := a.config.Machine.Node(r.Node); !ok || known.Key != n.Key {
		if err := a.admit(ctx, applies, n); err != nil {
			return nil, fmt.Errorf("node %s: %w", r.Node, err)
		}
		a.seen.heard(n.ID)
		a.config.Log.Info("node admitted", "node", n.ID, "host", n.Host, "addr", n.Addr)
	} else if known.Addr != n.Addr && a.vouched(from, applies, n) {
		if _, err := a.executor.apply(ctx, state.Sender{Node: n.ID}, &state.Move{ID: n.ID, Addr: n.Addr}); err != nil {
			return nil, err
		}
	}
	node, _ := a.config.Machine.Node(r.Node)
	return a.config.Authority.Sign(r, roleOf(node), a.config.Now(), 0)
}

// vouched reports whether an application says where its node is. Another node may
// have passed it on, and changed it, or pass on what it has seen once; but a proof
// is of the address too.
func (a *admission) vouched(from string, applies application, n state.Node) bool {
	if from == n.ID || a.config.Machine.Version() < state.Signed {
		return true
	}
	hash, err := applies.token(state.Signed)
	_, known := a.config.Machine.Token(hash)
	return err == nil && known
}

// admit enters a node by the token that it shows.
func (a *admission) admit(ctx context.Context, applies application, n state.Node) error {
	version := a.config.Machine.Version()
	hash, err := applies.token(version)
	if err != nil {
		return err
	}
	c := &state.Admit{TokenHash: hash, Node: n}
	if version >= state.Signed {
		c.Speaks = applies.Speaks
	}
	_, err = a.executor.apply(ctx, a.config.itself(), c)
	return err
}

// An applicationListener takes the applications of nodes that no certificate lets in.
type applicationListener struct {
	config    *Config
	admission *admission
	listener  net.Listener
	done      sync.WaitGroup
}

func (o *applicationListener) close() error {
	err := o.listener.Close()
	o.done.Wait()
	return err
}

// serve takes applications until it is closed: the port bounds how many wait, and
// for how long.
func (o *applicationListener) serve() {
	for {
		conn, err := o.listener.Accept()
		if err != nil {
			return
		}
		o.done.Go(func() { o.take(conn) })
	}
}

func (o *applicationListener) take(conn net.Conn) {
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), o.config.times.patience)
	defer cancel()
	var a application
	var answer admittance
	err := json.NewDecoder(io.LimitReader(conn, maxApplication)).Decode(&a)
	if err == nil {
		answer.Certificate, err = o.admission.certify(ctx, a)
	} else {
		err = fmt.Errorf("application %w: %w", meta.ErrInvalid, err)
	}
	if err != nil {
		answer.Error, answer.Removed = meta.Tell(err), o.wasRemoved(a)
		o.config.Log.Warn("node not admitted", "from", conn.RemoteAddr(), "cause", err)
	}
	_ = json.NewEncoder(conn).Encode(answer)
}

// wasRemoved reports whether a node that applies was taken out of the cluster.
func (o *applicationListener) wasRemoved(a application) bool {
	r, err := trust.ParseRequest(a.Request)
	return err == nil && o.config.Machine.Removed(r.Node)
}

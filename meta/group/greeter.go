package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"rankfs/meta"
	"rankfs/meta/trust"
)

// A hello is sent by a node that was started, or hears from no leader. It does not wait
// for the leader's call: the leader may take it for dead, know an old address of it, or
// have removed it and never call again.
type hello struct {
	Addr string `json:"addr"`
	Life uint64 `json:"life"`
	Host string `json:"host,omitempty"` // what its host is called now
	Deaf bool   `json:"deaf,omitempty"` // it hears from no leader
	Lost bool   `json:"lost,omitempty"` // its log or its snapshots cannot be read
}

// A welcome is the answer of the leader, or of another node that knows the leader.
type welcome struct {
	Leader  string `json:"leader,omitempty"` // ask that one
	Addr    string `json:"addr,omitempty"`   // where it is
	Applied uint64 `json:"applied,omitempty"`
	Wait    bool   `json:"wait,omitempty"` // the others still count on what was lost
}

// A greeter says hello to other nodes. It needs no replica: a node whose log is lost
// greets before it has another.
type greeter struct {
	config    *Config
	directory *directory
	standing  *standing
	calls     *calls
}

// greet has the leader hear of this node, by way of some nodes that may lead or know the
// leader, and returns how far the leader was then.
func (g *greeter) greet(ctx context.Context, h hello, asked []string) (applied uint64, err error) {
	w, err := g.first(ctx, h, asked)
	if leader := w.Leader; err == nil && leader != "" && leader != g.config.Self.ID {
		g.directory.meet(knownNode{leader, w.Addr})
		w = welcome{}
		err = g.calls.ask(ctx, leader, callHello, h, &w)
	}
	switch {
	case err != nil:
		return 0, err
	case w.Wait:
		return 0, fmt.Errorf("the cluster %w: it has not yet let go of what this node was", meta.ErrUnavailable)
	case w.Leader != "":
		return 0, errNoLeader
	}
	return w.Applied, nil
}

// first is the first answer of the nodes that are asked, or why there is none. Those that
// are silent are noted then.
func (g *greeter) first(ctx context.Context, h hello, asked []string) (welcome, error) {
	type said struct {
		welcome
		id  string
		err error
	}
	answers := make(chan said, len(asked))
	var all sync.WaitGroup
	defer all.Wait()
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, id := range asked {
		all.Go(func() {
			s := said{id: id}
			s.err = g.calls.ask(within, id, callHello, h, &s.welcome)
			answers <- s
		})
	}
	last := said{err: errNoLeader}
	var silent []string
	for range asked {
		s := <-answers
		if s.err == nil || errors.Is(s.err, trust.ErrRemoved) {
			return s.welcome, s.err
		}
		if last.err == errNoLeader {
			last = s
		}
		if told := new(meta.Told); !errors.As(s.err, &told) {
			silent = append(silent, s.id)
		}
	}
	g.standing.silent.Store(&silent)
	return welcome{}, last.err
}

// others are other nodes to greet: some that are known, and those that the file has.
func (g *greeter) others(ids []string) []string {
	for _, a := range g.directory.list() {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == g.config.Self.ID })
	return ids[:min(len(ids), maxKnown)]
}

package group

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/test/eventually"
)

// voting is a cluster on a network, with all votes given.
func voting(t *testing.T, size int) ([]*node, *network) {
	t.Helper()
	w := newNetwork()
	nodes := clusterWith(t, size, func(n *node) { n.net = w })
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, votersFor(size)) })
	t.Cleanup(w.heal) // before the nodes stop
	return nodes, w
}

// leading is the node of those that leads a majority, and the others.
func leading(t *testing.T, nodes []*node) (leader *node, rest []*node) {
	t.Helper()
	eventually.True(t, "one leads", func() bool {
		leader, rest = nil, nil
		for _, n := range nodes {
			if n.group.Leads() && leader == nil {
				leader = n
			} else {
				rest = append(rest, n)
			}
		}
		return leader != nil
	})
	return leader, rest
}

// set writes, within a time.
func set(n *node, value string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(n.t.Context(), within)
	defer cancel()
	_, err := n.group.Do(ctx, &state.Setting{Key: "k", Value: value})
	return err
}

func agree(t *testing.T, nodes []*node, value string) {
	t.Helper()
	for _, n := range nodes {
		eventually.True(t, fmt.Sprintf("node %s has %q", n.id, value), func() bool { return n.machine.Setting("k") == value })
	}
}

func TestTwoOfFiveDieAtOnce(t *testing.T) {
	nodes, _ := voting(t, 5)
	leader, rest := leading(t, nodes)
	leader.stop()
	rest[0].stop()
	left := rest[1:]
	if err := set(left[0], "after", enough); err != nil {
		t.Fatal(err)
	}
	agree(t, left, "after")
	leader.start(false)
	rest[0].start(false)
	agree(t, nodes, "after")
}

// A leader that is silent, its connections open, is not waited for: a node that has
// asked it something asks the next leader.
func TestASilentLeaderIsLeft(t *testing.T) {
	nodes, w := voting(t, 3)
	leader, rest := leading(t, nodes)
	for _, n := range rest { // a connection to be silent on
		if err := set(n, "before", enough); err != nil {
			t.Fatal(err)
		}
	}
	w.isolate(leader.id, nodes...)
	begun := time.Now()
	for _, n := range rest {
		if err := set(n, "after", enough); err != nil {
			t.Fatalf("%s: %v", n.id, err)
		}
	}
	t.Logf("another leads after %v", time.Since(begun))
	if err := set(leader, "alone", time.Second); !errors.Is(err, meta.ErrUnavailable) {
		t.Errorf("cut off, the leader wrote: %v", err)
	}
	if v := leader.machine.Setting("k"); v != "before" {
		t.Errorf("cut off, it reads %q", v)
	}
	w.heal()
	agree(t, nodes, "after")
}

// A node that ends does not wait for those that are silent, be it for an answer to what Raft
// has sent them, or for a connection.
func TestANodeThatEndsWaitsForNoOther(t *testing.T) {
	w := newNetwork()
	nodes := clusterWith(t, 3, func(n *node) { n.net, n.times.message = w, time.Hour })
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	t.Cleanup(w.heal)
	n, _ := leading(t, nodes)
	w.isolate(n.id, nodes...)
	eventually.True(t, "it leads no more, and stands for election", func() bool { return n.group.raft.State() == raft.Candidate })
	n.ends()
}

// Nor for Raft, which does not answer what it is asked when it is shut down.
func TestANodeThatEndsIsAskedWhetherItLeads(t *testing.T) {
	nodes, _ := voting(t, 3)
	n, _ := leading(t, nodes)
	n.group.endRaft()
	for range 30 { // of which it forgets half
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if err := n.group.giveAway(ctx); err == nil {
			t.Error("it has given the lead away")
		}
		if err := n.group.verify(ctx); !errors.Is(err, meta.ErrUnavailable) {
			t.Errorf("it leads: %v", err)
		}
		cancel()
	}
	n.ends()
}

// ends stops a node, which must come to an end.
func (n *node) ends() {
	n.t.Helper()
	ended := make(chan struct{})
	go func() {
		n.stop()
		close(ended)
	}()
	eventually.True(n.t, "it has ended", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
}

// A node that hears no other, and one that no other hears, do not keep the rest
// from what they do.
func TestOneWayLinks(t *testing.T) {
	for _, tt := range []struct {
		name string
		cut  func(w *network, leader, follower string)
	}{
		{"a follower is not heard", func(w *network, l, f string) { w.cut(f, l) }},
		{"a follower hears nothing", func(w *network, l, f string) { w.cut(l, f) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nodes, w := voting(t, 3)
			leader, rest := leading(t, nodes)
			tt.cut(w, leader.id, rest[0].id)
			if err := set(rest[1], "after", enough); err != nil {
				t.Error(err)
			}
			w.heal()
			agree(t, nodes, "after")
		})
	}
}

func TestALeaderThatNoNodeHears(t *testing.T) {
	nodes, w := voting(t, 3)
	leader, rest := leading(t, nodes)
	for _, n := range rest {
		w.cut(leader.id, n.id)
	}
	if err := set(rest[0], "after", enough); err != nil {
		t.Error(err)
	}
	w.heal()
	agree(t, nodes, "after")
}

// Links that come and go, and slow ones, cost time and nothing else.
func TestFlappingLinks(t *testing.T) {
	nodes, w := voting(t, 3)
	w.slow(2 * time.Millisecond)
	ended := make(chan struct{})
	flapping := make(chan struct{})
	go func() {
		defer close(flapping)
		for i := 0; ; i++ {
			w.isolate(nodes[i%3].id, nodes...)
			select {
			case <-ended:
				return
			case <-time.After(5 * nodes[0].times.heartbeat / 4):
			}
			w.change(func() { clear(w.mu.cut) })
			select {
			case <-ended:
				return
			case <-time.After(7 * nodes[0].times.heartbeat / 2):
			}
		}
	}()
	for i := range 30 {
		if err := set(nodes[i%3], fmt.Sprint(i), enough); err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	close(ended)
	<-flapping
	w.heal()
	agree(t, nodes, "29")
}

func TestAMinorityReadsAndDoesNotWrite(t *testing.T) {
	nodes, w := voting(t, 5)
	if err := set(nodes[0], "before", enough); err != nil {
		t.Fatal(err)
	}
	agree(t, nodes, "before")
	for _, few := range nodes[:2] {
		for _, many := range nodes[2:] {
			w.cut(few.id, many.id)
			w.cut(many.id, few.id)
		}
	}
	if err := set(nodes[4], "after", enough); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes[:2] {
		if err := set(n, "few", 1500*time.Millisecond); !errors.Is(err, meta.ErrUnavailable) {
			t.Errorf("%s: %v", n.id, err)
		}
		if v := n.machine.Setting("k"); v != "before" {
			t.Errorf("%s reads %q", n.id, v)
		}
	}
	w.heal()
	agree(t, nodes, "after")
}

// A node whose first admission went unanswered is admitted by the same token.
func TestANodeJoinsTwice(t *testing.T) {
	first := newNode(t, 0).found()
	token, n := first.token(1), newNode(t, 1)
	request, err := n.identity.Request()
	if err != nil {
		t.Fatal(err)
	}
	a := application{Request: request, Addr: reserve(t)}.present(token)
	if _, err := first.group.applications.admission.certify(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := n.join(first, token); err != nil {
		t.Fatalf("again: %v", err)
	}
	if got := len(first.machine.Nodes()); got != 2 {
		t.Errorf("%d nodes", got)
	}
	if err := set(n, "after", enough); err != nil {
		t.Error(err)
	}
}

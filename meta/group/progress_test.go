package group

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"rankfs/test/eventually"
)

// To ask how far the cluster is writes nothing, and is answered by what was agreed on
// until then, also by the next leader.
func TestReadyWritesNothing(t *testing.T) {
	nodes := cluster(t, 3)
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	for i := range 3 {
		leader, rest := leading(t, nodes)
		for _, n := range nodes {
			if err := n.group.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		before := leader.group.raft.LastIndex()
		for range 5 {
			for _, n := range nodes {
				if err := n.group.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		// The leader may write something of its own meanwhile.
		if after := leader.group.raft.LastIndex(); after-before >= 15 {
			t.Errorf("by 15 questions the log went from %d to %d", before, after)
		}
		value := fmt.Sprint(i)
		if err := set(leader, value, enough); err != nil {
			t.Fatal(err)
		}
		for _, n := range rest {
			if err := n.group.Ready(t.Context()); err != nil || n.machine.Setting("k") != value {
				t.Errorf("node %s knows %q, not %q (%v)", n.id, n.machine.Setting("k"), value, err)
			}
		}
		eventually.True(t, "it leads no more", func() bool {
			if leader.group.Leads() {
				_ = leader.group.giveAway(t.Context()) // connections end with its leadership, and perhaps before the answer
			}
			return !leader.group.Leads()
		})
		if err := rest[0].group.Ready(t.Context()); err != nil || rest[0].machine.Setting("k") != value {
			t.Errorf("after the leader changed: %q (%v)", rest[0].machine.Setting("k"), err)
		}
	}
}

// A leader that is cut off, and believes that it leads, is not asked in vain how far the
// cluster is: it does not say that it is up to date, which it was a moment before.
func TestALeaderThatIsNoneIsNotUpToDate(t *testing.T) {
	w := newNetwork()
	nodes := clusterWith(t, 3, func(n *node) {
		if n.net = w; n.id == fmt.Sprintf("%016x", 0xa0) {
			n.times.heartbeat = time.Minute // it leads for half as long when it hears no other node
		}
	})
	t.Cleanup(w.heal)
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	former, rest := nodes[0], nodes[1:]
	if err := errors.Join(set(former, "before", enough), former.group.Ready(t.Context())); err != nil {
		t.Fatal(err)
	}
	w.isolate(former.id, nodes...)
	eventually.True(t, "another leads", func() bool { return rest[0].group.Leads() || rest[1].group.Leads() })
	if err := set(rest[0], "after", enough); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	leads := former.group.Leads()
	if err := former.group.Ready(ctx); err == nil || !leads {
		t.Errorf("the former leader leads, as it believes: %v; it is up to date with %q: %v", leads, former.machine.Setting("k"), err)
	}
}

// Nor does it take for a proof what others have answered before it was asked, which Raft hears
// of later.
func TestAnswersFromBeforeAreNoProof(t *testing.T) {
	w := newNetwork()
	nodes := clusterWith(t, 3, func(n *node) {
		if n.net = w; n.id == fmt.Sprintf("%016x", 0xa0) {
			n.times.heartbeat = time.Minute
		}
	})
	t.Cleanup(w.heal)
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	former := nodes[0]
	if err := errors.Join(set(former, "before", enough), former.group.Ready(t.Context())); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "nothing is to be said", func() bool {
		stored := former.group.raft.LastIndex()
		time.Sleep(2 * idle)
		return former.group.raft.LastIndex() == stored
	})
	w.isolate(former.id, nodes...)
	ctx, cancel := context.WithTimeout(t.Context(), 3*idle)
	defer cancel()
	if err := former.group.Ready(ctx); err == nil || !former.group.Leads() {
		t.Errorf("it leads: %v; it is up to date with no other in reach: %v", former.group.Leads(), err)
	}
}

// A follower has executed a command before the leader did: a node is ready only when it has
// executed that command too.
func TestAFollowerMayBeAheadOfTheLeader(t *testing.T) {
	nodes := cluster(t, 3)
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	leader, rest := leading(t, nodes)
	if err := errors.Join(set(leader, "before", enough), leader.group.Ready(t.Context())); err != nil {
		t.Fatal(err)
	}
	ahead, behind := rest[0], rest[1]
	leader.group.fsm.mu.Lock()
	behind.group.fsm.mu.Lock()
	said := make(chan error, 1)
	go func() { said <- set(leader, "after", enough) }()
	eventually.True(t, "a node has executed it", func() bool { return ahead.machine.Setting("k") == "after" })
	for _, n := range []*node{leader, behind} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := n.group.Ready(ctx); err == nil {
			t.Errorf("node %s is ready with %q", n.id, n.machine.Setting("k"))
		}
		cancel()
	}
	behind.group.fsm.mu.Unlock()
	if err := behind.group.Ready(t.Context()); err != nil || behind.machine.Setting("k") != "after" {
		t.Errorf("%q: %v", behind.machine.Setting("k"), err)
	}
	leader.group.fsm.mu.Unlock()
	if err := <-said; err != nil {
		t.Error(err)
	}
}

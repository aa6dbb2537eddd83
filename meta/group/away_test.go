package group

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
	"rankfs/test/eventually"
)

// away is how long a node is away in a test that measures what comes of it.
var away = flag.Duration("away", 0, "how long a node is away that comes back")

// begun waits until a node has said that it was started.
func (n *node) begun() error {
	ctx, cancel := context.WithTimeout(n.t.Context(), enough)
	defer cancel()
	return n.group.Begun(ctx)
}

// A node that was away calls the leader, and knows at once what it has missed,
// however seldom Raft would call it by now.
func TestANodeThatComesBackCalls(t *testing.T) {
	nodes, _ := voting(t, 3)
	leader, rest := leading(t, nodes)
	n := rest[0]
	n.stop()
	eventually.True(t, "it is thought dead", func() bool { m, _ := leader.machine.Node(n.id); return !m.Up })
	if err := set(leader, "missed", enough); err != nil {
		t.Fatal(err)
	}
	time.Sleep(*away)
	started := time.Now()
	n.start(false)
	if err := n.begun(); err != nil {
		t.Fatal(err)
	}
	t.Logf("knows what it missed after %v", time.Since(started))
	if v := n.machine.Setting("k"); v != "missed" {
		t.Errorf("it knows %q", v)
	}
	// What it says of itself is never that it is down.
	if m, _ := n.machine.Node(n.id); !m.Up {
		t.Error("it says that it is down")
	}
	eventually.True(t, "it is up for the others", func() bool { m, _ := leader.machine.Node(n.id); return m.Up })
}

// A leader that has just begun has not heard of a node that is down, and takes it for up no
// sooner than it does.
func TestANodeThatIsDownStaysSoUnderAnotherLeader(t *testing.T) {
	nodes, _ := voting(t, 3)
	leader, rest := leading(t, nodes)
	n := rest[0]
	n.stop()
	down := func() bool { m, _ := leader.machine.Node(n.id); return !m.Up }
	eventually.True(t, "it is thought dead", down)
	up := []*node{leader, rest[1]}
	for range 2 { // the first round is over when the second has begun
		leader, rest = leading(t, up)
		seen := leader.group.duties.seen
		seen.begin([]string{leader.id, n.id, rest[0].id}, time.Now())
		eventually.True(t, "a round has begun, or it leads no more", func() bool {
			_, known := seen.signs(rest[0].id)
			return known || !leader.group.Leads()
		})
	}
	if !down() {
		t.Error("it is up, and has said nothing")
	}
	n.start(false)
	eventually.True(t, "it is up once it is there", func() bool { return !down() })
}

// A node that has moved is found, although no other node could call it.
func TestANodeThatHasMoved(t *testing.T) {
	nodes, _ := voting(t, 3)
	leader, rest := leading(t, nodes)
	n := rest[0]
	n.stop()
	n.addr = reserve(t)
	n.start(false)
	if err := n.begun(); err != nil {
		t.Fatal(err)
	}
	if err := set(leader, "after", enough); err != nil {
		t.Fatal(err)
	}
	agree(t, nodes, "after")
	if m, _ := leader.machine.Node(n.id); m.Addr != n.addr {
		t.Errorf("it is known at %s", m.Addr)
	}
}

// A node that was removed learns it, be it up or off at the time, and forgets the
// key that a voter has.
func TestARemovedNodeKnows(t *testing.T) {
	for _, up := range []bool{true, false} {
		t.Run(map[bool]string{true: "up", false: "off"}[up], func(t *testing.T) {
			nodes, _ := voting(t, 3)
			leader, rest := leading(t, nodes)
			n := rest[0]
			if !n.group.config.Authority.CanSign() {
				t.Fatal("it has no key to forget")
			}
			if !up {
				n.stop()
			}
			leaves(leader, &state.Remove{ID: n.id})
			for _, other := range []*node{leader, rest[1]} {
				eventually.True(t, "all know", func() bool { return other.machine.Removed(n.id) })
			}
			if !up {
				n.start(false)
				if err := n.begun(); !errors.Is(err, trust.ErrRemoved) {
					t.Fatalf("it came back, and learnt %v", err)
				}
			}
			eventually.True(t, "it knows", func() bool { return n.group.Removed() && n.group.Status().Removed })
			if err := set(n, "after", 5*time.Second); !errors.Is(err, trust.ErrRemoved) || !errors.Is(err, meta.ErrDenied) {
				t.Errorf("it writes, and is told %v", err)
			}
			eventually.True(t, "it has forgotten the key", n.keyless)
			eventually.True(t, "it asks for no vote", func() bool { return n.group.raft.State() == raft.Shutdown })
		})
	}
}

// The same for one whose certificate has expired, with which no other node talks.
func TestARemovedNodeWithoutACertificate(t *testing.T) {
	nodes := cluster(t, 4)
	eventually.True(t, "three voters of four", func() bool { return vote(nodes, 3) })
	leader, rest := leading(t, nodes)
	var n *node
	for _, one := range rest {
		if !one.group.config.Authority.CanSign() {
			n = one
		}
	}
	eventually.True(t, "it knows the others", func() bool { return len(n.group.directory.list()) == 3 })
	n.stop()
	leaves(leader, &state.Remove{ID: n.id})
	n.ahead = func() time.Time { return time.Now().Add(10 * 24 * time.Hour) }
	for _, one := range nodes {
		if one != n {
			one.stop()
			one.ahead = n.ahead
			one.start(false)
		}
	}
	n.start(false)
	if err := n.begun(); !errors.Is(err, trust.ErrRemoved) {
		t.Errorf("it learnt %v", err)
	}
}

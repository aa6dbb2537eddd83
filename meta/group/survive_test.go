package group

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// eventually writes, be it that nobody leads for a while.
func eventually(n *node, value string) {
	n.t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if err = set(n, value, 10*time.Second); err == nil {
			return
		}
	}
	n.t.Fatal(err)
}

// calm waits until the leader has nothing to change about who votes, now that it
// knows who is dead.
func calm(t *testing.T, up []*node, dead ...*node) *node {
	t.Helper()
	var leader *node
	await(t, "the leader has nothing to change", func() bool {
		for _, n := range up {
			if n.group.Leads() {
				leader = n
				for _, d := range dead {
					if m, _ := n.machine.Node(d.id); m.Up {
						return false
					}
				}
				return n.group.next().do == nothing
			}
		}
		return false
	})
	return leader
}

// Three nodes, one of which is away for long enough to be taken for dead. Then
// another goes, whichever, and the first comes back: those two go on, with all that
// was written.
func TestASecondNodeFailsAfterTheFirst(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second int // of those that lead, and follow
	}{
		{"a follower and then the leader", 1, 0},
		{"a follower and then the other", 1, 2},
		{"the leader and then the next", 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nodes, _ := settled(t, 3)
			leader, rest := leading(t, nodes)
			all := append([]*node{leader}, rest...)
			first, second := all[tt.first], all[tt.second]
			first.stop()
			var up []*node
			for _, n := range all {
				if n != first {
					up = append(up, n)
				}
			}
			calm(t, up, first)
			eventually(up[0], "between")
			second.stop()
			first.start(false)
			last := up[0]
			if last == second {
				last = up[1]
			}
			eventually(last, "after")
			agree(t, []*node{last, first}, "after")
			if !first.group.config.Authority.CanSign() || !last.group.config.Authority.CanSign() {
				t.Error("one that was away has forgotten the authority's key")
			}
		})
	}
}

// Of five nodes two fail, one after the other, then a third, and the first is back.
func TestThreeOfFiveFailInTurn(t *testing.T) {
	nodes, _ := settled(t, 5)
	leader, rest := leading(t, nodes)
	rest[0].stop()
	calm(t, append([]*node{leader}, rest[1:]...), rest[0])
	rest[1].stop()
	leader = calm(t, append([]*node{leader}, rest[2:]...), rest[0], rest[1])
	eventually(leader, "between")
	var up []*node
	for _, n := range nodes {
		if n != leader && n.group != nil {
			up = append(up, n)
		}
	}
	leader.stop()
	rest[0].start(false)
	eventually(up[0], "after")
	agree(t, append(up, rest[0]), "after")
}

// A node that loses its vote to a live one because it was dead keeps the
// authority's key; that it was away is no reason to forget it.
func TestANodeThatWasAwayKeepsTheKey(t *testing.T) {
	nodes := cluster(t, 4)
	await(t, "three voters of four", func() bool { return vote(nodes, 3) })
	leader, rest := leading(t, nodes)
	var away *node
	for _, n := range rest {
		if isVoter(leader.group.servers()[n.id]) {
			away = n
		}
	}
	await(t, "it has the key", func() bool { return !away.keyless() })
	away.stop()
	await(t, "another votes in its place", func() bool {
		return vote([]*node{leader}, 3) && !isVoter(leader.group.servers()[away.id])
	})
	away.start(false)
	if err := away.begun(); err != nil {
		t.Fatal(err)
	}
	await(t, "the leader has heard what it has", func() bool { signs, known := leader.group.seen.signs(away.id); return signs && known })
	leader.group.shareKey(t.Context())
	if away.keyless() {
		t.Error("it has forgotten the key")
	}
}

// Once a node that joined is told that all is settled, it may die at once, and any
// other node instead: those that are left go on.
func TestANodeThatWasJoinedDiesAtOnce(t *testing.T) {
	for die := range 3 {
		t.Run(fmt.Sprint("node ", die), func(t *testing.T) {
			nodes := []*node{newNode(t, 0).found()}
			token := nodes[0].token(2)
			for i := 1; i <= 2; i++ {
				n := newNode(t, i)
				if err := n.join(nodes[0], token); err != nil {
					t.Fatal(err)
				}
				nodes = append(nodes, n)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if err := n.group.Settled(ctx); err != nil {
					t.Fatal(err)
				}
				cancel()
			}
			nodes[die].stop()
			eventually(nodes[(die+1)%3], "after")
			agree(t, []*node{nodes[(die+1)%3], nodes[(die+2)%3]}, "after")
		})
	}
}

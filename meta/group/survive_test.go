package group

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/test/eventually"
)

// setInTime sets a value, also where no node leads for a while.
func setInTime(n *node, value string) {
	n.t.Helper()
	eventually.Done(n.t, enough, "a value is set", func() error { return set(n, value, 10*time.Second) })
}

// leaves has a node leave, which is refused while it seems that it is needed: on a
// machine with much to do another may be taken for dead for a moment.
func leaves(by *node, leave state.Leave) {
	by.t.Helper()
	var err error
	eventually.True(by.t, "a node may leave", func() bool {
		err = by.asks(leave)
		return !errors.Is(err, meta.ErrBusy)
	})
	if err != nil {
		by.t.Fatal(err)
	}
}

// asks is what the cluster says to a command, also where no node leads for a while.
func (n *node) asks(c state.Command) error {
	return onceLed(n.t, func() error {
		_, err := n.group.Do(n.t.Context(), c)
		return err
	})
}

// onceLed tries something again as long as no node leads, and for no longer than enough.
func onceLed(t *testing.T, do func() error) (err error) {
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	eventually.Until(ctx, func() error {
		if err = do(); errors.Is(err, meta.ErrUnavailable) {
			return err
		}
		return nil
	})
	return err
}

// calm waits until the leader has nothing to change about who votes, now that it
// knows who is dead.
func calm(t *testing.T, up []*node, dead ...*node) *node {
	t.Helper()
	var leader *node
	eventually.True(t, "the leader has nothing to change", func() bool {
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
			nodes, _ := voting(t, 3)
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
			setInTime(up[0], "between")
			second.stop()
			first.start(false)
			last := up[0]
			if last == second {
				last = up[1]
			}
			setInTime(last, "after")
			agree(t, []*node{last, first}, "after")
			if !first.group.config.Authority.CanSign() || !last.group.config.Authority.CanSign() {
				t.Error("one that was away has forgotten the authority's key")
			}
		})
	}
}

// Of five nodes two fail, one after the other, then a third, and the first is back.
func TestThreeOfFiveFailInTurn(t *testing.T) {
	nodes, _ := voting(t, 5)
	leader, rest := leading(t, nodes)
	rest[0].stop()
	calm(t, append([]*node{leader}, rest[1:]...), rest[0])
	rest[1].stop()
	leader = calm(t, append([]*node{leader}, rest[2:]...), rest[0], rest[1])
	setInTime(leader, "between")
	var up []*node
	for _, n := range nodes {
		if n != leader && n.group != nil {
			up = append(up, n)
		}
	}
	leader.stop()
	rest[0].start(false)
	setInTime(up[0], "after")
	agree(t, append(up, rest[0]), "after")
}

// A node that loses its vote to a live one because it was dead keeps the
// authority's key; that it was away is no reason to forget it.
func TestANodeThatWasAwayKeepsTheKey(t *testing.T) {
	nodes := cluster(t, 4)
	eventually.True(t, "three voters of four", func() bool { return vote(nodes, 3) })
	leader, rest := leading(t, nodes)
	var away *node
	for _, n := range rest {
		if isVoter(leader.group.servers()[n.id]) {
			away = n
		}
	}
	eventually.True(t, "it has the key", func() bool { return !away.keyless() })
	away.stop()
	eventually.True(t, "another votes in its place", func() bool {
		return vote([]*node{leader}, 3) && !isVoter(leader.group.servers()[away.id])
	})
	away.start(false)
	if err := away.begun(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the leader has heard what it has", func() bool {
		leader, _ = leading(t, nodes)
		signs, known := leader.group.duties.seen.signs(away.id)
		return signs && known
	})
	leader.group.keys.shareKey(t.Context())
	if away.keyless() {
		t.Error("it has forgotten the key")
	}
}

// Once a node that joined is told that all votes are given, it may die at once, and any
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
				ctx, cancel := context.WithTimeout(t.Context(), enough)
				if err := n.group.AwaitVotes(ctx); err != nil {
					t.Fatal(err)
				}
				cancel()
			}
			nodes[die].stop()
			setInTime(nodes[(die+1)%3], "after")
			agree(t, []*node{nodes[(die+1)%3], nodes[(die+2)%3]}, "after")
		})
	}
}

// A node that is needed is not removed, also when other nodes ask for it at the same time: the last
// voter, or one of two that are up.
func TestANodeThatIsNeededStays(t *testing.T) {
	nodes, _ := voting(t, 3)
	leader, rest := leading(t, nodes)
	rest[1].stop()
	calm(t, []*node{leader, rest[0]}, rest[1])
	for _, leave := range []state.Leave{
		&state.Remove{ID: rest[0].id}, &state.Remove{ID: leader.id},
		&state.Drain{ID: rest[0].id, Drained: true},
	} {
		if err := rest[0].asks(leave); !errors.Is(err, meta.ErrBusy) {
			t.Errorf("%+v: %v", leave, err)
		}
	}
	leaves(leader, &state.Remove{ID: rest[1].id})
	eventually.True(t, "one votes", func() bool { return leader.voters() == 1 && len(leader.group.servers()) == 2 })
	if err := rest[0].asks(&state.Remove{ID: leader.id}); !errors.Is(err, meta.ErrBusy) {
		t.Errorf("the only voter: %v", err)
	}
	setInTime(rest[0], "after")
}

// Nor does a node that is needed leave while it is not known yet that another has died. That one
// may be removed: those that stay answer.
func TestANodeThatIsNeededStaysThoughADeathIsNotKnown(t *testing.T) {
	nodes := clusterWith(t, 3, func(n *node) { n.times.dead = time.Hour })
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	leader, rest := leading(t, nodes)
	rest[1].stop()
	for _, leave := range []state.Leave{
		&state.Remove{ID: rest[0].id}, &state.Remove{ID: leader.id}, &state.Drain{ID: rest[0].id, Drained: true},
	} {
		err := rest[0].asks(leave)
		if !errors.Is(err, meta.ErrBusy) || !strings.Contains(err.Error(), rest[1].addr) {
			t.Errorf("%T of %s: %v", leave, leave.Leaver(), err)
		}
	}
	setInTime(rest[0], "between")
	leaves(rest[0], &state.Remove{ID: rest[1].id})
	setInTime(rest[0], "after")
}

// Of nodes that are told to leave all at once so many go that those who stay go on.
func TestAllAreToLeaveAtOnce(t *testing.T) {
	nodes, _ := voting(t, 5)
	leader, rest := leading(t, nodes)
	errs := make(chan error)
	for _, n := range rest {
		go func() {
			errs <- leader.asks(&state.Remove{ID: n.id})
		}()
	}
	for range rest {
		if err := <-errs; err != nil && !errors.Is(err, meta.ErrBusy) {
			t.Error(err)
		}
	}
	setInTime(leader, "after")
	for _, n := range rest {
		if _, ok := leader.machine.Node(n.id); ok {
			setInTime(n, "after")
		}
	}
}

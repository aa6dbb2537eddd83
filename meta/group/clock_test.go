package group

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
	"rankfs/test/eventually"
)

const years = 3 * 365 * 24 * time.Hour

// jump sets the clock of a node ahead of the right time, or behind.
func (n *node) jump(by time.Duration) { n.off.Store(int64(by)) }

// skewed is a cluster of nodes whose clocks jump one by one.
func skewed(t *testing.T, size int) []*node {
	t.Helper()
	nodes := clusterWith(t, size, func(n *node) {
		n.ahead = func() time.Time { return time.Now().Add(time.Duration(n.off.Load())) }
	})
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, size) })
	return nodes
}

// A token lasts as long as it was made for, whatever was wrong with the clock of
// who made it, or with the leader's before.
func TestATokenLastsAsLongAsItDoes(t *testing.T) {
	for _, by := range []time.Duration{years, 48 * time.Hour, 0, -48 * time.Hour, -years} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			nodes := skewed(t, 3)
			eventually.True(t, "a leader writes by a clock that is wrong", func() bool {
				leader, _ := leading(t, nodes)
				leader.jump(by)
				defer leader.jump(0)
				// Where it hands over first, it writes nothing: it may not even reach the next leader.
				_, err := leader.group.DoFor(t.Context(), leader.id, &state.Setting{Key: "k", Value: "x"})
				return err == nil
			})
			var leader *node
			var token trust.Token
			eventually.True(t, "a token is made while no leader hands over", func() bool {
				var rest []*node
				leader, rest = leading(t, nodes)
				term, maker := leader.group.raft.CurrentTerm(), rest[0]
				maker.jump(min(max(by, -20*time.Hour), 48*time.Hour)) // where it is let talk to the leader
				var err error
				token, err = maker.group.MakeToken(t.Context(), time.Hour, 2, state.Operator)
				maker.jump(0)
				// It knows no later leader, be it itself: one that has lost the lead may not know that yet.
				return err == nil && maker.group.raft.CurrentTerm() == term && leader.group.raft.CurrentTerm() == term
			})
			if err := newNode(t, 9).joinInTime(leader, token); err != nil {
				t.Errorf("at once: %v", err)
			}
			for _, n := range nodes {
				n.jump(2 * time.Hour)
			}
			if err := newNode(t, 10).joinInTime(leader, token); !errors.Is(err, meta.ErrDenied) {
				t.Errorf("after two hours, with a token of one: %v", err)
			}
		})
	}
}

// joinInTime is join, also where no node leads for a while.
func (n *node) joinInTime(other *node, token trust.Token) error {
	return onceLed(n.t, func() error { return n.join(other, token) })
}

// The node that leads is right about the time, if most are; and a node whose clock is
// wrong hinders no other, and takes commands again once it is right.
func TestTheLeaderIsRightAboutTheTime(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour, 20 * years, -years} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			nodes := skewed(t, 3)
			leader, rest := leading(t, nodes)
			leader.jump(by)
			eventually.True(t, "another leads", func() bool {
				leader.group.calls.client.CloseIdleConnections() // as net/http does when time has passed by the clock
				return rest[0].group.Leads() || rest[1].group.Leads()
			})
			for i, n := range rest {
				if err := set(n, fmt.Sprint(i), enough); err != nil {
					t.Errorf("with a clock that is right: %v", err)
				}
			}
			leader.jump(0)
			eventually.True(t, "all are up", func() bool {
				return vote(nodes, 3) && !slices.ContainsFunc(rest[0].machine.Nodes(), func(m state.Node) bool { return !m.Up })
			})
			if err := set(leader, "back", enough); err != nil {
				t.Error(err)
			}
			agree(t, nodes, "back")
			_, rest = leading(t, nodes)
			rest[0].jump(by)
			if err := set(rest[1], "away", enough); err != nil {
				t.Error(err)
			}
			rest[0].jump(0)
			agree(t, nodes, "away")
		})
	}
}

// A node whose clock is years ahead signs for itself, is cut off, and says why;
// once the clock is right it has a certificate as others have, and is back.
func TestAClockThatIsYearsAhead(t *testing.T) {
	nodes := clusterWith(t, 3, func(n *node) {
		n.ahead = func() time.Time { return time.Now().Add(time.Duration(n.off.Load())) }
		n.times.renew = 100 * time.Millisecond
	})
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	leader, rest := leading(t, nodes)
	leader.jump(years)
	eventually.True(t, "it signs for itself", func() bool { return leader.identity.Until().After(time.Now().Add(years)) })
	eventually.True(t, "it knows no leader", func() bool { return leader.group.Leader() == "" })
	eventually.True(t, "it says why it cannot write", func() bool {
		err := set(leader, "wrong", 2*time.Second)
		return err != nil && strings.Contains(err.Error(), "set the clocks")
	})
	if err := set(rest[0], "right", enough); err != nil {
		t.Errorf("the others: %v", err)
	}
	leader.jump(0)
	agree(t, nodes, "right")
	eventually.True(t, "its certificate is of a week", func() bool { return leader.identity.Until().Before(time.Now().Add(trust.Life + time.Hour)) })
	if err := set(leader, "again", enough); err != nil {
		t.Error(err)
	}
}

// Clocks that jump, all of them, keep no node from writing, and none from joining afterwards.
func TestClocksThatJump(t *testing.T) {
	var ahead atomic.Int64
	nodes := clusterWith(t, 3, func(n *node) {
		n.ahead = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	for _, jump := range []time.Duration{48 * time.Hour, -time.Hour, 0} {
		ahead.Store(int64(jump))
		if err := set(nodes[1], fmt.Sprint(jump), enough); err != nil {
			t.Fatalf("%v ahead: %v", jump, err)
		}
		agree(t, nodes, fmt.Sprint(jump))
	}
	joined := newNode(t, 9)
	if err := joined.join(nodes[0], nodes[0].token(1)); err != nil {
		t.Errorf("after a clock was ahead for a moment a node cannot join: %v", err)
	}
}

package group

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/test/eventually"
)

// keyless reports whether a node has the authority's key neither in memory nor on
// its disk.
func (n *node) keyless() bool {
	_, err := os.Stat(filepath.Join(n.trust(), "ca.key"))
	return !n.group.config.Authority.CanSign() && errors.Is(err, os.ErrNotExist)
}

// A node that gets a vote gets the authority's key, also a second time; one that is drained and has
// no vote forgets it.
func TestTheKeyGoesWithTheVote(t *testing.T) {
	nodes := cluster(t, 4)
	eventually.True(t, "three voters of four", func() bool { return vote(nodes, 3) })
	keys := func() bool {
		for _, n := range nodes {
			if isVoter(nodes[0].group.servers()[n.id]) == n.keyless() {
				return false
			}
		}
		return true
	}
	eventually.True(t, "the voters have the key", keys)
	leader, rest := leading(t, nodes)
	drain := func(n *node, drained bool) {
		t.Helper()
		leaves(leader, &state.Drain{ID: n.id, Drained: drained})
	}
	for _, n := range rest {
		drain(n, true) // if it has a vote, it loses that to a node that has none
		eventually.True(t, "it has no vote", func() bool { return !isVoter(leader.group.servers()[n.id]) && vote(nodes, 3) })
		eventually.True(t, "it has no key, and the others have", keys)
		drain(n, false)
	}
}

// A voter that has lost its key is sent it, and one that leads fetches it.
func TestAKeyThatIsLost(t *testing.T) {
	nodes, _ := voting(t, 3)
	leader, rest := leading(t, nodes)
	for _, n := range []*node{rest[0], leader} {
		n.stop()
		if err := os.Remove(filepath.Join(n.trust(), "ca.key")); err != nil {
			t.Fatal(err)
		}
		n.start(false)
		eventually.True(t, "it has the key again", func() bool { return !n.keyless() })
	}
	// Be it that it leads by now.
	leader, _ = leading(t, nodes)
	if err := leader.group.config.Authority.Forget(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the leader has the key again", func() bool { return !leader.keyless() })
	if err := newNode(t, 9).join(leader, leader.token(1)); err != nil {
		t.Error(err)
	}
}

// Only the leader handles the key.
func TestTheKeyIsForTheLeader(t *testing.T) {
	nodes, _ := voting(t, 3)
	for _, call := range []string{callKey, callForget, callEntrust} {
		eventually.True(t, "the node that is asked knows another for the leader", func() bool {
			_, rest := leading(t, nodes)
			term := rest[1].group.raft.CurrentTerm()
			var key []byte
			err := rest[0].group.Ask(t.Context(), rest[1].id, call, []byte("key"), &key)
			if rest[0].group.Leads() || rest[1].group.raft.CurrentTerm() != term || errors.Is(err, meta.ErrBusy) {
				return false
			}
			if !errors.Is(err, meta.ErrDenied) {
				t.Errorf("%s: %v, %d bytes", call, err, len(key))
			}
			return true
		})
	}
}

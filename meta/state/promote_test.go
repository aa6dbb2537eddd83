package state_test

import (
	"errors"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

// promote is a command for a node by another, when these vote.
func promote(by, node string, voters ...string) state.Command {
	return signedBy(by, &state.Promote{ID: node, Voters: state.Voters{Voters: voters}})
}

func (c *cluster) role(node string, want state.Role) {
	c.t.Helper()
	if n, _ := c.m.Node(node); n.Role != want {
		c.t.Errorf("node %s is %q, not %s", node, n.Role, want)
	}
}

// Most of the voters make an operator, each for itself, and within an hour; what was
// said counts on, in a snapshot too.
func TestPromote(t *testing.T) {
	voters := []string{leader, hostile, other}
	c := roled(t)
	for range 3 { // one voter is one, however often
		c.do(promote(hostile, hostile, voters...))
	}
	c.role(hostile, state.Member)
	c.do(promote(other, other, voters...)) // which is another matter
	c.role(hostile, state.Member)
	c.m = through(t, c.m)
	if said := c.m.Wishing(hostile, voters); len(said) != 1 || said[0] != hostile {
		t.Errorf("it was said by %v", said)
	}
	c.do(promote(leader, hostile, voters...))
	c.role(hostile, state.Operator)
	c.role(other, state.Member)
	if said := c.m.Wishing(hostile, voters); len(said) != 0 {
		t.Errorf("what was done is wished by %v", said)
	}
	c.do(signedBy(hostile, &state.Remove{ID: operator}))
}

// A vote that is old does not count: of a node that gave it hours ago, has no vote
// any more, or was removed. A removed voter counts as one that is against it.
func TestPromoteByTooFew(t *testing.T) {
	for _, tt := range []struct {
		name   string
		begin  func(*cluster)
		voters []string
	}{
		{"long ago", func(c *cluster) { c.now += int64(state.WishLife) }, []string{leader, hostile, other}},
		{"no vote any more", func(*cluster) {}, []string{operator, leader, other}},
		{"removed", func(c *cluster) { c.do(signedBy(operator, &state.Remove{ID: hostile})) }, []string{hostile, leader, other}},
		{"half of them", func(*cluster) {}, []string{operator, leader, hostile, other}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := roled(t)
			c.do(promote(hostile, other, operator, leader, hostile))
			tt.begin(c)
			c.do(promote(leader, other, tt.voters...))
			c.role(other, state.Member)
		})
	}
}

// An operator makes another at once. A node without a vote has no say, nor has one
// that is not of the cluster, and such a node is not made an operator.
func TestPromoteByWhom(t *testing.T) {
	c := roled(t)
	c.refuse(meta.ErrDenied, promote(hostile, hostile, operator, leader, other))
	c.refuse(meta.ErrDenied, promote(id(77), hostile, id(77)))
	c.refuse(meta.ErrNotExist, promote(operator, id(77), operator))
	c.do(promote(operator, hostile, leader, other))
	c.role(hostile, state.Operator)
	if _, err := state.Encode(&state.Promote{ID: hostile}); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("a command without a signer: %v", err)
	}
}

package state_test

import (
	"errors"
	"strings"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A voter without which no majority of the votes is of nodes that are up is
// neither removed nor drained, whichever node asks for it. Five nodes, of which the last two
// never vote where three do.
func TestVotersThatAreNeeded(t *testing.T) {
	for _, tt := range []struct {
		name   string
		voters []int
		down   []int
		gone   []int // removed before, and still counted
		who    int
		advice string // if it is refused; else it goes
	}{
		{"the only voter", []int{1}, nil, nil, 1, "have others join first"},
		{"one of two", []int{1, 2}, nil, nil, 2, "try again in a moment"},
		{"one of three", []int{1, 2, 3}, nil, nil, 2, ""},
		{"one that is down, of three", []int{1, 2, 3}, []int{3}, nil, 3, ""},
		{"one of the two that are up, of three", []int{1, 2, 3}, []int{3}, nil, 2, "start those that are down"},
		{"a second of three, in the same moment", []int{1, 2, 3}, nil, []int{3}, 2, "try again in a moment"},
		{"one of two, and no other is up", []int{1, 2}, []int{5}, []int{3, 4}, 2, "have another join first"},
		{"one of four", []int{1, 2, 3, 4}, nil, nil, 2, ""},
		{"one of five, two of which are down", []int{1, 2, 3, 4, 5}, []int{4, 5}, nil, 3, "start those that are down"},
		{"one of those two", []int{1, 2, 3, 4, 5}, []int{4, 5}, nil, 4, ""},
		{"one that does not vote", []int{1, 2, 3}, []int{3}, nil, 5, ""},
		{"any, by a leader that notes no voters", nil, nil, nil, 2, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			goes := tt.advice == ""
			for _, drain := range []bool{false, true} {
				c := roled(t)
				by := id(5)
				c.do(signedBy(operator, &state.Token{Hash: index(2), Expires: 1 << 62, Uses: 1, Role: state.Operator}))
				c.do(byLeader(leader, &state.Admit{TokenHash: index(2), Node: nodeOf(5), Speaks: state.Version}))
				if tt.who == 5 {
					by = operator
				}
				for _, n := range tt.down {
					c.do(byLeader(leader, &state.Health{ID: id(n)}))
				}
				for _, n := range tt.gone {
					c.do(signedBy(by, &state.Remove{ID: id(n)}))
				}
				var voters []string
				for _, n := range tt.voters {
					voters = append(voters, id(n))
				}
				var leave state.Leave = &state.Remove{ID: id(tt.who)}
				if drain {
					leave = &state.Drain{ID: id(tt.who), Drained: true}
				}
				leave.Vote(voters)
				_, early := c.m.LetsGo(leave)
				_, err := c.try(signedBy(by, leave))
				if (err == nil) != goes || (early == nil) != goes || err != nil && !errors.Is(err, meta.ErrBusy) {
					t.Errorf("drain %v: %v; before it is in the log: %v", drain, err, early)
				}
				if err != nil && !strings.Contains(err.Error(), tt.advice) {
					t.Errorf("drain %v: %v, and no word of %q", drain, err, tt.advice)
				}
				if !drain && c.m.Removed(id(tt.who)) != goes {
					t.Error("it was done and not, or the reverse")
				}
			}
		})
	}
}

// Taking a drain back, and draining twice, needs no vote of any node.
func TestADrainThatIsTakenBack(t *testing.T) {
	c := roled(t)
	drain := func(drained bool, voters ...string) *state.Drain {
		return &state.Drain{ID: other, Drained: drained, Voters: state.Voters{Voters: voters}}
	}
	c.do(signedBy(operator, drain(true, operator, leader, other)))
	c.do(signedBy(operator, drain(true, other)))
	c.do(signedBy(operator, drain(false, other)))
	c.refuse(meta.ErrBusy, signedBy(operator, drain(true, other)))
	if _, err := state.Encode(signedBy(operator, drain(true, make([]string, state.MaxVoters+1)...))); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("too many voters: %v", err)
	}
	if _, err := state.Encode(drain(true, other)); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("voters in a command of version 3: %v", err)
	}
}

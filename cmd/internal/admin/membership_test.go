package admin

import (
	"errors"
	"strings"
	"testing"

	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/cmd/internal/control"
	"rankfs/fetch"
	"rankfs/meta"
	"rankfs/meta/group"
	"rankfs/meta/state"
)

// A node that asks for what it has no right to is told that, whether what it names is there
// or not; one that has the right is told what is not there. Which node is to be an operator
// may be said on an operator and on a voter.
func TestRightsBeforeExistence(t *testing.T) {
	for _, tt := range []struct {
		name            string
		role            state.Role
		votes, removed  bool
		others, promote error
	}{
		{"operator", state.Operator, false, false, meta.ErrNotExist, meta.ErrNotExist},
		{"voter", state.Member, true, false, meta.ErrDenied, meta.ErrNotExist},
		{"member", state.Member, false, false, meta.ErrDenied, meta.ErrDenied},
		{"removed", state.Member, false, true, meta.ErrDenied, meta.ErrDenied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cluster := &catalogtest.Cluster{State: roled(t, tt.role, tt.removed)}
			c, err := catalog.New(catalog.Config{Dir: t.TempDir(), State: cluster.State, Env: new(fetch.Env)})
			if err != nil {
				t.Fatal(err)
			}
			a := answering(cluster, c, "a")
			if tt.votes {
				a.membership.members = voting{alone{cluster}}
			}
			_, promoted := a.PromoteNode(t.Context(), "nosuch")
			for name, got := range map[string]struct{ err, want error }{
				"token rm":     {a.DropToken(t.Context(), "cafe"), tt.others},
				"node drain":   {a.DrainNode(t.Context(), control.DrainRequest{Node: "nosuch", Drain: true}), tt.others},
				"node undrain": {a.DrainNode(t.Context(), control.DrainRequest{Node: "nosuch"}), tt.others},
				"node rm":      {a.RemoveNode(t.Context(), "nosuch"), tt.others},
				"node promote": {promoted, tt.promote},
				"queue rm":     {a.DropQueue(t.Context(), "nosuch"), tt.others},
				"dataset rm":   {a.Remove("nosuch"), tt.others},
			} {
				if !errors.Is(got.err, got.want) {
					t.Errorf("%s: got %v, want that it %v", name, got.err, got.want)
				}
			}
		})
	}
}

// A node that is to remove itself is told where that is possible.
func TestANodeCannotRemoveItself(t *testing.T) {
	for role, want := range map[state.Role]string{
		state.Operator: "is not allowed to remove itself: do it on another operator, as " + catalogtest.Node(1).Host,
		state.Member:   "which is for operators",
	} {
		cluster := &catalogtest.Cluster{State: roled(t, role, false)}
		c, err := catalog.New(catalog.Config{Dir: t.TempDir(), State: cluster.State, Env: new(fetch.Env)})
		if err != nil {
			t.Fatal(err)
		}
		err = answering(cluster, c, "a").RemoveNode(t.Context(), catalogtest.Node(0).ID)
		if !errors.Is(err, meta.ErrDenied) || !strings.Contains(err.Error(), want) {
			t.Errorf("a node that is %s: %v, want %q", role, err, want)
		}
	}
}

// voting is a group in which this node has a vote.
type voting struct{ alone }

func (v voting) Status() group.Status {
	return group.Status{Members: []group.Member{{Node: state.Node{ID: v.Self()}, Voter: true}}}
}

// roled is a cluster whose second node founded it and let the first in, as a role says, and
// may have removed it.
func roled(t *testing.T, role state.Role, removed bool) *state.Machine {
	t.Helper()
	m, hash := state.Speaking(state.Version), strings.Repeat("a", 64)
	founder := catalogtest.Node(1)
	commands := []state.Command{
		&state.Found{Cluster: state.Cluster{ID: "c", CA: "ca"}},
		&state.Admit{Node: founder, Speaks: state.Version},
		&state.Token{Hash: hash, Expires: 1 << 62, Uses: 1, Role: role},
		&state.Admit{TokenHash: hash, Node: catalogtest.Node(0), Speaks: state.Version},
	}
	if removed {
		commands = append(commands, &state.Remove{ID: catalogtest.Node(0).ID})
	}
	for i, c := range commands {
		_, admits := c.(*state.Admit)
		state.Sign(c, state.Sender{Node: founder.ID, Leads: i == 0 || admits}, state.Version)
		state.Stamp(c, int64(i+1)*1e9)
		data, err := state.Encode(c)
		if err == nil {
			_, err = m.Apply(uint64(i+1), data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

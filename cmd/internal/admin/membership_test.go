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
	"rankfs/meta/state"
)

// A member that asks for what is for operators is told that, whether what it names is there
// or not; an operator is told what is not there.
func TestRightsBeforeExistence(t *testing.T) {
	for _, role := range []state.Role{state.Member, state.Operator} {
		t.Run(string(role), func(t *testing.T) {
			want := meta.ErrNotExist
			if role == state.Member {
				want = meta.ErrDenied
			}
			cluster := &catalogtest.Cluster{State: roled(t, role)}
			c, err := catalog.New(catalog.Config{Dir: t.TempDir(), State: cluster.State, Env: new(fetch.Env)})
			if err != nil {
				t.Fatal(err)
			}
			a := answering(cluster, c, "a")
			for name, err := range map[string]error{
				"token rm":   a.DropToken(t.Context(), "cafe"),
				"node drain": a.DrainNode(t.Context(), control.DrainRequest{Node: "nosuch", Drain: true}),
				"node rm":    a.RemoveNode(t.Context(), "nosuch"),
				"queue rm":   a.DropQueue(t.Context(), "nosuch"),
				"dataset rm": a.Remove("nosuch"),
			} {
				if !errors.Is(err, want) {
					t.Errorf("%s: got %v, want that it %v", name, err, want)
				}
			}
		})
	}
}

// roled is a cluster whose second node founded it and let the first in, as a role says.
func roled(t *testing.T, role state.Role) *state.Machine {
	t.Helper()
	m, hash := state.New(), strings.Repeat("a", 64)
	founder := catalogtest.Node(1)
	for i, c := range []state.Command{
		&state.Found{Cluster: state.Cluster{ID: "c", CA: "ca"}},
		&state.Admit{Node: founder, Speaks: state.Version},
		&state.Token{Hash: hash, Expires: 1 << 62, Uses: 1, Role: role},
		&state.Admit{TokenHash: hash, Node: catalogtest.Node(0), Speaks: state.Version},
	} {
		_, isToken := c.(*state.Token)
		c.Sign(state.Sender{Node: founder.ID, Leads: !isToken})
		c.Stamp(int64(i+1) * 1e9)
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

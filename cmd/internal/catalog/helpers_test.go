package catalog

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"rankfs/meta/state"
)

// No node is asked to look through a split while one of the cluster may not know the
// call; then those are that are up and not drained, but not this one.
func TestNodesThatAreAskedToHelp(t *testing.T) {
	m, at := state.Speaking(state.Version), int64(0)
	do := func(commands ...state.Command) {
		t.Helper()
		for _, c := range commands {
			at += 1e9
			state.Stamp(c, at)
			data, err := state.Encode(c)
			if err == nil {
				_, err = m.Apply(m.Summary().Applied+1, data)
			}
			if err != nil {
				t.Fatalf("%T: %v", c, err)
			}
		}
	}
	var ids []string
	hash := strings.Repeat("a", 64)
	do(&state.Found{Cluster: state.Cluster{ID: "c", CA: "ca"}}, &state.Token{Hash: hash, Expires: 1 << 62, Uses: state.MaxUses})
	for i, host := range []string{"self", "other", "third"} {
		ids = append(ids, fmt.Sprintf("%016x", i+1))
		do(&state.Admit{TokenHash: hash, Node: state.Node{ID: ids[i], Host: host, Addr: host + ":1", Key: host}})
	}
	var asked []string
	c := &Catalog{config: Config{State: m, Self: ids[0], Find: func(_ context.Context, node, scheme string, what []byte, _ io.Writer) error {
		asked = append(asked, node+" "+scheme+" "+string(what))
		return nil
	}}}
	if n := len(c.helpers()); n != 0 {
		t.Errorf("%d nodes are asked before all of them are of this release", n)
	}
	leader := state.Sender{Node: ids[0], Leads: true}
	signed := func(c state.Command) state.Command { state.Sign(c, leader, state.Version); return c }
	do(signed(&state.Upgrade{To: state.Version, Nodes: ids}))
	if n := len(c.helpers()); n != 2 {
		t.Errorf("%d nodes are asked, want both others", n)
	}
	do(signed(&state.Drain{ID: ids[2], Drained: true}))
	for _, h := range c.helpers() {
		if err := h.Find(t.Context(), "keys", []byte("this of "+h.Host), io.Discard); err != nil {
			t.Error(err)
		}
	}
	if want := ids[1] + " keys this of other"; len(asked) != 1 || asked[0] != want {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

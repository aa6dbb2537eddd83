package state_test

import (
	"bytes"
	"slices"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

func TestRemovedNode(t *testing.T) {
	c := founded(t, 3)
	c.do(&state.Claim{Dataset: "d", Generation: 1, Ranks: 2, Rank: 1, Node: id(2)})
	c.do(&state.OpenQueue{View: view(1, 2), Generation: 1, Units: 9, Policy: "flow"})
	c.do(&state.TakeUnit{View: view(1, 2), Reader: "w", Node: id(2), Take: 3})
	c.do(&state.Remove{ID: id(2)})
	if got := c.m.Claims("d", 2).Nodes(); got[0] != "" || got[1] != id(2) {
		t.Fatalf("claims %q", got)
	}
	if w, _ := c.m.Reader(view(1, 2), "w"); w.Unit != -1 || !w.Left {
		t.Fatalf("%+v", w)
	}
	c.do(&state.Settle{View: view(1, 2), Generation: 1, Nodes: state.Runs{{Node: id(1), Count: 1}, {Node: id(2), Count: 1}}})
	c.refuse(meta.ErrNotExist, &state.Settle{View: view(2, 2), Generation: 1, Nodes: state.Runs{{Node: id(9), Count: 2}}})
	denied := []state.Command{
		&state.Admit{TokenHash: index(1), Node: nodeOf(2)},
		&state.Move{ID: id(2), Addr: "a:1"},
		&state.Claim{Dataset: "d", Generation: 1, Ranks: 2, Node: id(2)},
		&state.TakeUnit{View: view(1, 2), Reader: "v", Node: id(2), Take: 4},
		&state.Health{ID: id(2), Up: true},
		&state.Begin{ID: id(2), Addr: "a:1", Life: 1},
	}
	for _, command := range denied {
		c.refuse(meta.ErrDenied, command)
	}
	c.do(&state.Remove{ID: id(3)})
	c.refuse(meta.ErrBusy, &state.Remove{ID: id(1)}) // or the next to come would need no token
	if !c.m.Removed(id(2)) || c.m.Removed(id(1)) {
		t.Fatal("the wrong one was removed")
	}
}

// What is said of a life of a daemon that is over comes too late: the daemon that
// was started since is up, and holds nothing but what it took itself.
func TestLives(t *testing.T) {
	c := founded(t, 2)
	v := view(1, 2)
	c.do(&state.OpenQueue{View: v, Generation: 1, Units: 9, Policy: "flow"})
	take := func(unit int64) {
		c.do(&state.TakeUnit{View: v, Reader: "w", Node: id(2), Take: unit, Nonce: uint64(unit)})
	}
	holds := func(unit int64, up bool) {
		t.Helper()
		w, _ := c.m.Reader(v, "w")
		if n, _ := c.m.Node(id(2)); w.Unit != unit || n.Up != up {
			t.Fatalf("it holds %d; %+v", w.Unit, n)
		}
	}
	take(3)
	c.do(&state.Begin{ID: id(2), Addr: "h:2", Life: 5})
	holds(-1, true)
	take(4)
	c.do(&state.Health{ID: id(2)}) // of the life before the first
	holds(4, true)
	c.do(&state.Begin{ID: id(2), Addr: "h:3", Life: 5}) // sent again
	holds(4, true)
	c.do(&state.Health{ID: id(2), Life: 5})
	holds(-1, false)
	c.do(&state.Begin{ID: id(2), Addr: "h:3", Life: 5})
	holds(-1, false)
	c.do(&state.Begin{ID: id(2), Addr: "h:4", Life: 6})
	holds(-1, true)
	if n, _ := c.m.Node(id(2)); n.Addr != "h:4" {
		t.Errorf("%+v", n)
	}
}

// A host that is called otherwise than when its node was admitted is so beside the name
// that plans go by, until it has its name again; and it is written with that.
func TestAHostThatIsCalledOtherwise(t *testing.T) {
	c := roled(t)
	n, _ := c.m.Node(id(2))
	begin := func(life uint64, called string) state.Command {
		return signedBy(id(2), &state.Begin{ID: id(2), Addr: "h:2", Life: life, Called: called})
	}
	for life, called := range []string{"", "other", "third", ""} {
		c.do(begin(uint64(life+1), called))
		read, err := state.Read(bytes.NewReader(written(t, snapshot(t, c.m))))
		if err != nil {
			t.Fatal(err)
		}
		for what, m := range map[string]*state.Machine{"now": c.m, "from a snapshot": read} {
			if got, _ := m.Node(id(2)); got.Host != n.Host || got.Called != called {
				t.Errorf("%s: %+v, want it called %q", what, got, called)
			}
		}
	}
	if data, err := state.Encode(&state.Begin{ID: id(2), Addr: "h:2", Life: 9, Called: "other"}); err == nil && data[0] < state.Signed {
		t.Errorf("the release before is told, in a command of version %d", data[0])
	}
}

// A plan goes by the hosts of its nodes, so these are known for good.
func TestTheHostOfARemovedNodeIsRemembered(t *testing.T) {
	c := founded(t, 2)
	c.do(&state.Remove{ID: id(2)})
	snapshot, err := c.m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := snapshot.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	later := state.New()
	if err := later.Restore(&b); err != nil {
		t.Fatal(err)
	}
	for what, m := range map[string]*state.Machine{"now": c.m, "from a snapshot": later} {
		if got := []string{m.HostOf(id(1)), m.HostOf(id(2)), m.HostOf(id(3))}; !slices.Equal(got, []string{"h", "h", ""}) {
			t.Errorf("%s: hosts %q", what, got)
		}
	}
}

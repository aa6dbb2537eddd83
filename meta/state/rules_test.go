package state_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

// What no machine would accept is refused before it is in a log.
func TestEncodeRefuses(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	record := json.RawMessage("{}")
	admit := func(change func(*state.Node)) *state.Admit {
		n := nodeOf(1)
		change(&n)
		return &state.Admit{Node: n}
	}
	tests := []struct {
		name    string
		command state.Command
	}{
		{"a cluster without id", &state.Found{Cluster: state.Cluster{CA: "ca"}}},
		{"a cluster without authority", &state.Found{Cluster: state.Cluster{ID: "c"}}},
		{"a token of half a hash", &state.Token{Hash: index(1)[1:], Expires: 1, Uses: 1}},
		{"a token in capitals", &state.Token{Hash: strings.Repeat("A", 64), Expires: 1, Uses: 1}},
		{"a token for nobody", &state.Token{Hash: index(1), Expires: 1}},
		{"a token for all the world", &state.Token{Hash: index(1), Expires: 1, Uses: state.MaxUses + 1}},
		{"a token used already", &state.Token{Hash: index(1), Expires: 1, Uses: 2, Used: 1}},
		{"a dropped token without hash", &state.DropToken{}},
		{"an admission by half a token", &state.Admit{TokenHash: "ab", Node: nodeOf(1)}},
		{"a short id", admit(func(n *state.Node) { n.ID = "1" })},
		{"an id in capitals", admit(func(n *state.Node) { n.ID = "ABCDEF0123456789" })},
		{"an id of zeros", admit(func(n *state.Node) { n.ID = id(0) })},
		{"no host", admit(func(n *state.Node) { n.Host = "" })},
		{"a host with a blank", admit(func(n *state.Node) { n.Host = "a b" })},
		{"a host of bytes", admit(func(n *state.Node) { n.Host = "\xff" })},
		{"a long address", admit(func(n *state.Node) { n.Addr = long })},
		{"no key", admit(func(n *state.Node) { n.Key = "" })},
		{"a beginning of nobody", &state.Begin{Addr: "h:1", Life: 1}},
		{"a beginning nowhere", &state.Begin{ID: id(1), Life: 1}},
		{"a beginning of no life", &state.Begin{ID: id(1), Addr: "h:1"}},
		{"a move to nowhere", &state.Move{ID: id(1)}},
		{"a drain of nobody", &state.Drain{}},
		{"a removal of nobody", &state.Remove{}},
		{"the health of nobody", &state.Health{}},
		{"the pool of nobody", &state.OfferPool{Bytes: 1}},
		{"a quota of less than nothing", &state.SetQuota{Name: "j", Quota: -1}},
		{"a pool of less than nothing", &state.OfferPool{ID: id(1), Bytes: -1}},
		{"a dataset without name", &state.PutDataset{Registration: record, Index: index(1)}},
		{"a dataset with a slash", &state.PutDataset{Name: "a/b", Registration: record, Index: index(1)}},
		{"a dataset without record", &state.PutDataset{Name: "d", Index: index(1)}},
		{"a record that is no JSON", &state.PutDataset{Name: "d", Registration: json.RawMessage("{"), Index: index(1)}},
		{"a long record", &state.PutDataset{Name: "d", Registration: json.RawMessage(`"` + strings.Repeat("x", state.MaxRegistration) + `"`), Index: index(1)}},
		{"a dataset without index", &state.PutDataset{Name: "d", Registration: record}},
		{"an index of odd digits", &state.PutDataset{Name: "d", Registration: record, Index: index(1)[1:]}},
		{"an index of less than nothing", &state.PutDataset{Name: "d", Registration: record, Index: index(1), IndexBytes: -1}},
		{"the removal of no dataset", &state.RemoveDataset{}},
		{"a claim of no ranks", &state.Claim{Dataset: "d", Node: id(1)}},
		{"a claim past the ranks", &state.Claim{Dataset: "d", Ranks: 2, Rank: 2, Node: id(1)}},
		{"a claim of too many ranks", &state.Claim{Dataset: "d", Ranks: meta.MaxRanks + 1, Node: id(1)}},
		{"a claim for nobody", &state.Claim{Dataset: "d", Ranks: 2}},
		{"a plan of a dataset", &state.Settle{View: "d", Nodes: state.Runs{{Node: id(1), Count: 2}}}},
		{"a plan of half a view", &state.Settle{View: "d@ranks=2,step=4", Nodes: state.Runs{{Node: id(1), Count: 2}}}},
		{"a plan of a long view", &state.Settle{View: "d@" + long}},
		{"a plan of a view of nothing", &state.Settle{View: strings.TrimPrefix(view(1, 2), "d"), Nodes: state.Runs{{Node: id(1), Count: 2}}}},
		{"a plan without nodes", &state.Settle{View: view(1, 2)}},
		{"a plan of too few ranks", &state.Settle{View: view(1, 2), Nodes: state.Runs{{Node: id(1), Count: 1}}}},
		{"a plan of too many ranks", &state.Settle{View: view(1, 2), Nodes: state.Runs{{Node: id(1), Count: 3}}}},
		{"a plan of 2^64+2 ranks", &state.Settle{View: view(1, 2), Nodes: state.Runs{{Node: id(1), Count: 1 << 63}, {Node: id(2), Count: 1 << 63}, {Node: id(1), Count: 2}}}},
		{"a plan with an empty run", &state.Settle{View: view(1, 2), Nodes: state.Runs{{Node: id(1), Count: 2}, {Node: id(2)}}}},
		{"a plan with a run in two", &state.Settle{View: view(1, 2), Nodes: state.Runs{{Node: id(1), Count: 1}, {Node: id(1), Count: 1}}}},
		{"a plan on nobody", &state.Settle{View: view(1, 2), Nodes: state.Runs{{Count: 2}}}},
		{"no view to unsettle", &state.Unsettle{}},
		{"a queue of no view", &state.OpenQueue{View: "d", Units: 1, Policy: "flow"}},
		{"a queue of too many units", &state.OpenQueue{View: view(1, 2), Units: state.MaxUnits + 1, Policy: "flow"}},
		{"a queue without policy", &state.OpenQueue{View: view(1, 2), Units: 1}},
		{"a step of nobody", &state.Step{View: view(1, 2), Node: id(1)}},
		{"a step of a long worker", &state.Step{View: view(1, 2), Worker: long, Node: id(1)}},
		{"a step of a worker of bytes", &state.Step{View: view(1, 2), Worker: "\xff", Node: id(1)}},
		{"a step on no node", &state.Step{View: view(1, 2), Worker: "w"}},
		{"a step to unit -2", &state.Step{View: view(1, 2), Worker: "w", Node: id(1), Take: -2}},
		{"a step past all units", &state.Step{View: view(1, 2), Worker: "w", Node: id(1), Take: state.MaxUnits}},
		{"a step past all ranks", &state.Step{View: view(1, 2), Worker: "w", Node: id(1), Rank: meta.MaxRanks}},
		{"a step in a long view", &state.Step{View: long, Worker: "w", Node: id(1)}},
		{"nobody leaves", &state.LeaveQueue{View: view(1, 2)}},
		{"somebody leaves nothing", &state.LeaveQueue{Worker: "w"}},
		{"a reset of nothing", &state.ResetQueue{}},
		{"a drop of nothing", &state.DropQueue{}},
		{"a setting of nothing", &state.Setting{Value: "v"}},
		{"a long setting", &state.Setting{Key: "k", Value: long}},
		{"a setting of bytes", &state.Setting{Key: "k", Value: "\xff"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := state.Encode(tt.command); !errors.Is(err, meta.ErrInvalid) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// What got into the log all the same is refused by every machine alike, and
// does not stop it.
func TestApplyRefuses(t *testing.T) {
	c := founded(t, 1)
	_, err := c.m.Apply(1000, []byte("\x03\x02{\"Hash\":\"00\",\"Uses\":1}"))
	if !errors.Is(err, meta.ErrInvalid) || c.m.Err() != nil {
		t.Fatal(err, c.m.Err())
	}
	c.index = 999
	c.refuse(meta.ErrInvalid, &state.Setting{Key: "k", Value: "applied before"})
	c.do(&state.Setting{Key: "k", Value: "v"})
}

func TestTokens(t *testing.T) {
	c := newCluster(t)
	c.refuse(meta.ErrDenied, &state.Admit{Node: nodeOf(1)}) // not founded
	c.do(&state.Found{Cluster: state.Cluster{ID: "c", CA: "ca"}})
	c.do(&state.Admit{Node: nodeOf(1)})
	c.refuse(meta.ErrDenied, &state.Admit{Node: nodeOf(2)})
	c.refuse(meta.ErrDenied, &state.Admit{TokenHash: index(1), Node: nodeOf(2)})
	c.refuse(meta.ErrInvalid, &state.Token{Hash: index(1), Expires: c.now, Uses: 1})

	expires := c.now + 60e9
	twice := state.Token{Hash: index(1), Expires: expires, Uses: 2}
	again := twice
	c.do(&again)
	c.do(&state.Admit{TokenHash: index(1), Node: nodeOf(2)})
	c.do(&state.Admit{TokenHash: index(1), Node: nodeOf(2)}) // uses up nothing
	again = twice
	c.do(&again) // nor does it come back full
	c.do(&state.Admit{TokenHash: index(1), Node: nodeOf(3)})
	c.refuse(meta.ErrDenied, &state.Admit{TokenHash: index(1), Node: nodeOf(4)})
	again = twice
	c.do(&again)
	c.refuse(meta.ErrDenied, &state.Admit{TokenHash: index(1), Node: nodeOf(4)})

	c.do(&state.Token{Hash: index(2), Expires: expires, Uses: 1})
	c.do(&state.DropToken{Hash: index(2)})
	c.do(&state.Token{Hash: index(2), Expires: expires, Uses: 1}) // late, and without effect
	c.refuse(meta.ErrDenied, &state.Admit{TokenHash: index(2), Node: nodeOf(4)})

	c.do(&state.Token{Hash: index(3), Expires: expires, Uses: 1})
	c.now = expires - 1e9
	c.refuse(meta.ErrDenied, &state.Admit{TokenHash: index(3), Node: nodeOf(4)})
	c.now = 0 // a clock that jumps back brings nothing back
	c.refuse(meta.ErrDenied, &state.Admit{TokenHash: index(3), Node: nodeOf(4)})
	if s := c.m.Summary(); s.Now != c.now || s.Tokens != 0 {
		t.Fatalf("%+v", s)
	}
	c.do(&state.Token{Hash: index(4), Expires: expires, Uses: 1}) // time has come back
	c.do(&state.Admit{TokenHash: index(4), Node: nodeOf(4)})
	c.now = -expires // before there is any
	c.refuse(meta.ErrDenied, &state.Admit{Node: nodeOf(5)})
	if s := c.m.Summary(); s.Now != 0 {
		t.Fatalf("%+v", s)
	}
}

func TestRemovedNode(t *testing.T) {
	c := founded(t, 3)
	c.do(&state.Claim{Dataset: "d", Generation: 1, Ranks: 2, Rank: 1, Node: id(2)})
	c.do(&state.OpenQueue{View: view(1, 2), Generation: 1, Units: 9, Policy: "flow"})
	c.do(&state.Step{View: view(1, 2), Worker: "w", Node: id(2), Take: 3})
	c.do(&state.Remove{ID: id(2)})
	if got := c.m.Claims("d", 2).Nodes(); got[0] != "" || got[1] != id(2) {
		t.Fatalf("claims %q", got)
	}
	if w, _ := c.m.Worker(view(1, 2), "w"); w.Unit != -1 || !w.Left {
		t.Fatalf("%+v", w)
	}
	c.do(&state.Settle{View: view(1, 2), Generation: 1, Nodes: state.Runs{{Node: id(1), Count: 1}, {Node: id(2), Count: 1}}})
	c.refuse(meta.ErrNotExist, &state.Settle{View: view(2, 2), Generation: 1, Nodes: state.Runs{{Node: id(9), Count: 2}}})
	denied := []state.Command{
		&state.Admit{TokenHash: index(1), Node: nodeOf(2)},
		&state.Move{ID: id(2), Addr: "a:1"},
		&state.Claim{Dataset: "d", Generation: 1, Ranks: 2, Node: id(2)},
		&state.Step{View: view(1, 2), Worker: "v", Node: id(2), Take: 4},
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
		c.do(&state.Step{View: v, Worker: "w", Node: id(2), Take: unit, Nonce: uint64(unit)})
	}
	holds := func(unit int64, up bool) {
		t.Helper()
		w, _ := c.m.Worker(v, "w")
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

func TestDatasets(t *testing.T) {
	c := founded(t, 1)
	put := func(record string, i int, generation uint64) *state.PutDataset {
		return &state.PutDataset{Name: "d", Registration: json.RawMessage(record), Index: index(i), IndexBytes: 10, Generation: generation}
	}
	c.refuse(meta.ErrExist, put(`{"a":2}`, 1, 0))
	c.refuse(meta.ErrExist, put(`{"a":1}`, 2, 0))
	c.refuse(meta.ErrStale, put(`{"a":2}`, 1, 2))
	if r := c.do(put(`{"a":2}`, 1, 1)); r.Generation != 2 {
		t.Fatalf("%+v", r)
	}
	if r := c.do(put(`{"a":2}`, 1, 1)); r.Generation != 2 { // sent again
		t.Fatalf("%+v", r)
	}
	c.do(put(`{"a":2}`, 2, 2))
	c.refuse(meta.ErrStale, &state.RemoveDataset{Name: "d", Generation: 2})
	c.do(&state.RemoveDataset{Name: "d", Generation: 3})
	c.do(&state.RemoveDataset{Name: "d", Generation: 3})
	c.refuse(meta.ErrStale, put(`{"a":3}`, 2, 3))
	if r := c.do(put(`{"a":2}`, 2, 0)); r.Generation != 4 {
		t.Fatalf("%+v", r)
	}
	if d, ok := c.m.Dataset("d"); !ok || d.Before != 0 || string(d.Registration) != `{"a":2}` {
		t.Fatalf("%+v", d)
	}
}

// A dataset that others are made of stays while they are there, and none is made of
// itself.
func TestDatasetsMadeOfOthers(t *testing.T) {
	c := roled(t)
	put := func(name string, generation uint64, bases ...string) state.Command {
		return signedBy(hostile, &state.PutDataset{Name: name, Registration: json.RawMessage(`{}`), Index: index(1), IndexBytes: int64(generation), Generation: generation, Bases: bases})
	}
	remove := func(name string) state.Command {
		d, _ := c.m.Dataset(name)
		return signedBy(operator, &state.RemoveDataset{Name: name, Generation: d.Generation})
	}
	c.refuse(meta.ErrNotExist, put("x", 0, "none"))
	c.do(put("e", 0, "d"))
	c.do(put("f", 0, "d", "e"))
	for name, by := range map[string]string{"d": "e, f is made of it; remove that first: rankfs dataset rm e", "e": "f is made of it; remove that first: rankfs dataset rm f"} {
		if _, err := c.try(remove(name)); !errors.Is(err, meta.ErrBusy) || !strings.HasSuffix(err.Error(), by) {
			t.Errorf("removal of %s: %v, want advice to do %s", name, err, by)
		}
	}
	d, _ := c.m.Dataset("d")
	c.refuse(meta.ErrInvalid, put("d", d.Generation, "f"))
	for _, odd := range [][]string{{"d"}, {"e", "d"}, {"e", "e"}, {"a/b"}, {""}, strings.Split(strings.Repeat("e,", 17), ",")[:17]} {
		if _, err := state.Encode(put("d", d.Generation, odd...)); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("made of %q: %v", odd, err)
		}
	}
	if _, err := state.Encode(&state.PutDataset{Name: "x", Registration: json.RawMessage(`{}`), Index: index(1), Bases: []string{"d"}}); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("a command of the release before says what a dataset is made of: %v", err)
	}
	// The base may change; what is made of it has to be made anew.
	c.do(put("d", d.Generation))
	again, err := state.Read(bytes.NewReader(written(t, snapshot(t, c.m))))
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := again.Dataset("f"); !slices.Equal(f.Bases, []string{"d", "e"}) {
		t.Errorf("out of a snapshot comes %+v", f)
	}
	for _, name := range []string{"f", "e", "d"} {
		c.do(remove(name))
	}
}

// A new generation takes along all that was said of the one before.
func TestNewGeneration(t *testing.T) {
	c := founded(t, 1)
	c.do(&state.PutDataset{Name: "e", Registration: json.RawMessage("1"), Index: index(1)})
	other := strings.Replace(view(1, 2), "d@", "e@", 1)
	nodes := state.Runs{{Node: id(1), Count: 2}}
	for v, g := range map[string]uint64{view(1, 2): 1, other: 2} {
		c.do(&state.Claim{Dataset: v[:1], Generation: g, Ranks: 2, Node: id(1)})
		c.do(&state.Settle{View: v, Generation: g, Nodes: nodes})
		c.do(&state.OpenQueue{View: v, Generation: g, Units: 1, Policy: "flow"})
	}
	if r := c.do(&state.PutDataset{Name: "d", Registration: json.RawMessage("2"), Index: index(1), Generation: 1}); r.Generation != 3 {
		t.Fatalf("%+v", r)
	}
	_, plan := c.m.Plan(view(1, 2))
	_, queue := c.m.Queue(view(1, 2))
	if plan || queue || c.m.Claims("d", 2) != nil {
		t.Fatal("something of the old generation is left")
	}
	if s := c.m.Summary(); s.Plans != 1 || s.Queues != 1 || s.Jobs != 1 {
		t.Fatalf("what is of another dataset: %+v", s)
	}
	c.refuse(meta.ErrStale, &state.Settle{View: view(1, 2), Generation: 1, Nodes: nodes})
	c.refuse(meta.ErrStale, &state.Claim{Dataset: "d", Generation: 1, Ranks: 2, Node: id(1)})
	c.refuse(meta.ErrStale, &state.OpenQueue{View: view(1, 2), Generation: 1, Units: 1, Policy: "flow"})
	c.refuse(meta.ErrNotExist, &state.Step{View: view(1, 2), Worker: "w", Node: id(1), Take: 0})
}

func TestPlans(t *testing.T) {
	c := founded(t, 1)
	if got := c.m.Plans(); len(got) != 0 {
		t.Fatalf("plans of nobody: %v", got)
	}
	settle := func(epoch int) {
		c.do(&state.Settle{View: view(epoch, 2), Generation: 1, Nodes: state.Runs{{Node: id(1), Count: 2}}})
	}
	for _, epoch := range []int{2, 1, 3, 2} { // the second time it is settled already
		settle(epoch)
	}
	before, _ := c.m.Plan(view(1, 2))
	overtaken := func(want bool) {
		t.Helper()
		if got := c.m.Overtaken(view(1, 2), before.Sequence); got != want {
			t.Errorf("overtaken: %v", got)
		}
	}
	overtaken(false)
	c.do(&state.Unsettle{View: view(1, 2)})
	overtaken(true)
	settle(1)
	overtaken(true)
	var got []string
	for _, p := range c.m.Plans() {
		if one, ok := c.m.Plan(p.View); !ok || fmt.Sprint(one) != fmt.Sprint(p) {
			t.Errorf("plan %v, by its view %v", p, one)
		}
		got = append(got, p.View)
	}
	if want := []string{view(2, 2), view(3, 2), view(1, 2)}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestClaims(t *testing.T) {
	c := founded(t, 3)
	claim := func(n int) string {
		return c.do(&state.Claim{Dataset: "d", Generation: 1, Ranks: 4, Rank: 2, Node: id(n)}).Before
	}
	if c.m.Claims("d", 4) != nil {
		t.Fatal("claims of nobody")
	}
	for i, want := range []struct {
		node   int
		before string
	}{{1, ""}, {1, ""}, {2, id(1)}, {2, id(1)}, {1, id(2)}, {3, id(1)}} {
		if got := claim(want.node); got != want.before {
			t.Fatalf("claim %d: %q held it before, not %q", i, got, want.before)
		}
	}
	want := state.Runs{{Count: 2}, {Node: id(3), Count: 1}, {Count: 1}}
	got := c.m.Claims("d", 4)
	if !slices.Equal(got, want) {
		t.Fatalf("got %v", got)
	}
	sent, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var received state.Runs
	if err := json.Unmarshal(sent, &received); err != nil || !slices.Equal(received, want) {
		t.Fatalf("%s was received as %v, %v", sent, received, err)
	}
}

// The life of a unit that two hold, one of them on a node that goes down.
func TestSteps(t *testing.T) {
	c := founded(t, 3)
	v := view(1, 3)
	open := c.do(&state.OpenQueue{View: v, Generation: 1, Units: 100, Policy: "flow", Seed: 7}).Queue
	if second := c.do(&state.OpenQueue{View: v, Generation: 1, Units: 50, Policy: "other"}).Queue; *second != *open {
		t.Fatalf("the second to open it got %+v", second)
	}
	var nonce uint64
	step := func(worker int, finish bool, take int64) *state.Step {
		nonce++
		return &state.Step{
			View: v, Worker: fmt.Sprint(worker), Node: id(1 + worker%3), Rank: uint64(worker % 3),
			Finish: finish, Take: take, Nonce: nonce,
		}
	}
	expect := func(s *state.Step, want state.Stepped) {
		t.Helper()
		for range 2 { // the second time it is sent again
			if got := c.do(s).Step; *got != want {
				t.Fatalf("got %+v, want %+v", *got, want)
			}
		}
	}
	expect(step(0, false, 5), state.Stepped{Unit: 5, Finished: -1})
	expect(step(1, false, 5), state.Stepped{Unit: 5, Finished: -1})
	expect(step(2, false, 5), state.Stepped{Unit: -1, Finished: -1, Refused: state.RefusedHeld})
	c.refuse(meta.ErrInvalid, step(0, false, 6))  // holds 5
	c.refuse(meta.ErrInvalid, step(2, true, 100)) // there are 100
	expect(step(2, true, 6), state.Stepped{Unit: 6, Finish: state.Returned, Finished: -1})
	expect(step(0, true, 7), state.Stepped{Unit: 7, Finish: state.Finished, Finished: 5})
	expect(step(1, true, 5), state.Stepped{Unit: -1, Finish: state.Lost, Finished: 5, Refused: state.RefusedDone})
	expect(step(2, true, 8), state.Stepped{Unit: 8, Finish: state.Finished, Finished: 6})

	down := id(1 + 2%3)
	c.do(&state.Health{ID: down})
	c.refuse(meta.ErrUnavailable, step(2, false, 9))
	expect(step(2, true, -1), state.Stepped{Unit: -1, Finish: state.Returned, Finished: -1})
	c.do(&state.Health{ID: down, Up: true})
	expect(step(1, false, 8), state.Stepped{Unit: 8, Finished: -1})

	c.do(&state.LeaveQueue{View: v, Worker: "1"})
	c.refuse(meta.ErrDenied, step(1, false, 9))
	c.do(&state.LeaveQueue{View: v, Worker: "3"}) // before its first step arrives
	c.refuse(meta.ErrDenied, step(3, false, 9))
	moved := step(0, true, -1)
	moved.Node = id(2)
	c.refuse(meta.ErrInvalid, moved)

	q, _ := c.m.Queue(v)
	if q.Done != 2 || q.Held != 1 || q.Workers != 2 || q.Seed != 7 {
		t.Fatalf("%+v", q)
	}
	if w, _ := c.m.Worker(v, "0"); w.Units != 1 || w.Busy != w.Since-open.Opened-2e9 {
		t.Fatalf("%+v, opened at %d", w, open.Opened)
	}

	if r := c.do(&state.ResetQueue{View: v, Run: 0}).Queue; r.Run != 1 || r.Done != 0 || r.Held != 0 {
		t.Fatalf("%+v", r)
	}
	expect(step(0, true, 5), state.Stepped{Unit: 5, Finish: state.Returned, Finished: -1})
	if r := c.do(&state.ResetQueue{View: v, Run: 0}).Queue; r.Run != 1 || r.Held != 1 { // sent again
		t.Fatalf("%+v", r)
	}
	c.refuse(meta.ErrInvalid, &state.ResetQueue{View: v, Run: 2})
	c.do(&state.DropQueue{View: v})
	c.refuse(meta.ErrNotExist, step(0, true, 5))
	c.refuse(meta.ErrNotExist, &state.ResetQueue{View: v, Run: 1})
	c.do(&state.LeaveQueue{View: v, Worker: "0"})
}

func TestChanged(t *testing.T) {
	isClosed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	c := founded(t, 1)
	c.do(&state.OpenQueue{View: view(1, 1), Generation: 1, Units: 3, Policy: "flow"})
	for _, tt := range []struct {
		name           string
		command        state.Command
		cluster, queue bool
	}{
		{"a setting", &state.Setting{Key: "k", Value: "v"}, true, false},
		{"the same again", &state.Setting{Key: "k", Value: "v"}, false, false},
		{"a step", &state.Step{View: view(1, 1), Worker: "w", Node: id(1), Nonce: 1}, false, true},
		{"the same step", &state.Step{View: view(1, 1), Worker: "w", Node: id(1), Nonce: 1}, false, false},
		{"a node goes down", &state.Health{ID: id(1)}, true, true},
		{"it is still down", &state.Health{ID: id(1)}, false, false},
		{"a move", &state.Move{ID: id(1), Addr: "h:2"}, true, false},
		{"a move to where it is", &state.Move{ID: id(1), Addr: "h:2"}, false, false},
		{"a plan", &state.Settle{View: view(1, 1), Generation: 1, Nodes: state.Runs{{Node: id(1), Count: 1}}}, true, false},
		{"the plan again", &state.Settle{View: view(1, 1), Generation: 1, Nodes: state.Runs{{Node: id(1), Count: 1}}}, false, false},
		{"a dataset goes", &state.RemoveDataset{Name: "d", Generation: 1}, true, true},
	} {
		cluster, queues := c.m.Changed(), c.m.QueuesChanged()
		c.do(tt.command)
		if isClosed(cluster) != tt.cluster || isClosed(queues) != tt.queue {
			t.Errorf("%s: cluster %v, queues %v", tt.name, isClosed(cluster), isClosed(queues))
		}
	}
	token := c.m.Changed()
	c.now = 1 << 62
	c.do(&state.Unsettle{View: view(1, 1)})
	if !isClosed(token) || c.m.Summary().Tokens != 0 {
		t.Error("a token expired without anybody noticing")
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

package state_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

func TestTokenBounds(t *testing.T) {
	c := founded(t, 1)
	c.do(&state.DropToken{Hash: index(1)})
	for n := range state.MaxTokens {
		c.do(&state.Token{Hash: index(n + 10), Expires: 1 << 61, Uses: 1})
	}
	c.refuse(meta.ErrBusy, &state.Token{Hash: index(9), Expires: 1 << 61, Uses: 1})
	c.do(&state.Admit{TokenHash: index(10), Node: nodeOf(2)})
	c.do(&state.Token{Hash: index(9), Expires: 1 << 61, Uses: 1})
	for n := range state.MaxSpent - state.MaxTokens - 2 { // with the first one, and the one used up
		c.do(&state.DropToken{Hash: index(n + 11)})
		c.do(&state.Token{Hash: index(n + 10 + state.MaxTokens), Expires: 1 << 61, Uses: 1})
	}
	c.do(&state.DropToken{Hash: index(9)})
	c.refuse(meta.ErrBusy, &state.Token{Hash: index(8), Expires: 1 << 62, Uses: 1})
	c.now = 1 << 61
	c.do(&state.Token{Hash: index(8), Expires: 1 << 62, Uses: 1})
	if got := c.m.Sizes().Tokens; got != 1 {
		t.Fatalf("%d tokens", got)
	}
}

func TestNodeBounds(t *testing.T) {
	c := founded(t, state.MaxNodes)
	c.do(&state.Token{Hash: index(2), Expires: 1 << 62, Uses: 1})
	c.refuse(meta.ErrBusy, &state.Admit{TokenHash: index(2), Node: nodeOf(state.MaxNodes + 1)})
	c.do(&state.Remove{ID: id(1)})
	c.do(&state.Admit{TokenHash: index(2), Node: nodeOf(state.MaxNodes + 1)})
	if got := c.m.Sizes(); got.Nodes != state.MaxNodes || got.Up != state.MaxNodes {
		t.Fatalf("%+v", got)
	}
}

func TestSettingBounds(t *testing.T) {
	c := newCluster(t)
	for n := range state.MaxSettings {
		c.do(&state.Setting{Key: fmt.Sprint(n), Value: "v"})
	}
	c.refuse(meta.ErrBusy, &state.Setting{Key: "k", Value: "v"})
	c.do(&state.Setting{Key: "0", Value: "w"})
	c.do(&state.Setting{Key: "1"})
	c.do(&state.Setting{Key: "k", Value: "v"})
	if c.m.Setting("0") != "w" || c.m.Setting("1") != "" || len(c.m.Settings()) != state.MaxSettings {
		t.Fatal(c.m.Settings())
	}
}

func TestRecordBounds(t *testing.T) {
	c := newCluster(t)
	registration := make(json.RawMessage, state.MaxRegistration)
	for i := range registration {
		registration[i] = '1'
	}
	put := func(n int) *state.PutDataset {
		return &state.PutDataset{Name: fmt.Sprint(n), Registration: registration, Index: index(n)}
	}
	for n := range state.MaxRegistrations / state.MaxRegistration {
		c.do(put(n))
	}
	c.refuse(meta.ErrBusy, put(1<<20))
	larger := put(1)
	larger.Index, larger.Generation = index(0), 2
	c.do(larger) // in place of as much
	c.do(&state.RemoveDataset{Name: "0", Generation: 1})
	c.do(put(1 << 20))
}

// Of claims, the oldest go: of a dataset, and of all when their ranks are many.
func TestClaimBounds(t *testing.T) {
	c := founded(t, 1)
	c.do(&state.PutDataset{Name: "e", Registration: json.RawMessage("1"), Index: index(1)})
	claim := func(dataset string, generation, ranks uint64) {
		c.do(&state.Claim{Dataset: dataset, Generation: generation, Ranks: ranks, Node: id(1)})
	}
	claim("e", 2, 1)
	for n := range uint64(state.MaxRankCounts + 1) {
		claim("d", 1, n+1)
	}
	if c.m.Claims("d", 1) != nil || c.m.Claims("d", 2) == nil || c.m.Claims("e", 1) == nil {
		t.Fatal("others were dropped than the oldest of the dataset")
	}
	for n := range uint64(4) {
		claim("e", 2, meta.MaxRanks-n)
	}
	if c.m.Claims("e", 1) != nil || c.m.Claims("d", 2) != nil || c.m.Claims("e", meta.MaxRanks) == nil {
		t.Fatal("other claims were dropped than the oldest")
	}
	if got := c.m.Sizes().RankCounts; got >= state.MaxRankCounts {
		t.Fatalf("claims of %d numbers of ranks", got)
	}
}

func TestPlanBounds(t *testing.T) {
	c := founded(t, 1)
	settle := func(epoch int) {
		c.do(&state.Settle{View: view(epoch, 1), Generation: 1, Nodes: state.Runs{{Node: id(1), Count: 1}}})
	}
	isSettled := func(epoch int) bool {
		_, ok := c.m.SettledPlan(view(epoch, 1))
		return ok
	}
	for n := range state.MaxPlans {
		settle(n)
	}
	c.do(&state.Unsettle{View: view(0, 1)})
	settle(0) // it is the latest now
	evicted, _ := c.m.SettledPlan(view(1, 1))
	next, _ := c.m.SettledPlan(view(2, 1))
	settle(state.MaxPlans)
	if !isSettled(0) || isSettled(1) || !isSettled(2) || !isSettled(state.MaxPlans) {
		t.Fatal("another plan was dropped than the oldest")
	}
	if got := c.m.Sizes().Plans; got != state.MaxPlans {
		t.Fatalf("%d plans", got)
	}
	c.m = through(t, c.m)
	if c.m.Overtaken(evicted.View, evicted.Sequence) {
		t.Fatal("a plan that was dropped for room does not stand")
	}
	settle(1)
	if !c.m.Overtaken(evicted.View, evicted.Sequence) || c.m.Overtaken(next.View, next.Sequence) {
		t.Fatal("a plan stands beside another, or one that was dropped for that does not")
	}
	if isSettled(2) || !isSettled(3) {
		t.Fatal("after a snapshot another plan was dropped than the oldest")
	}
}

// Nodes of plans that differ take room; equal ones do not.
func TestRankMapBounds(t *testing.T) {
	c := founded(t, 8)
	settle := func(epoch, n int) {
		var runs state.Runs
		for i := range meta.MaxRanks {
			runs = append(runs, state.Run{Node: id(1 + i%2*n), Count: 1})
		}
		c.do(&state.Settle{View: view(epoch, meta.MaxRanks), Generation: 1, Nodes: runs})
	}
	for epoch := range state.MaxRuns / meta.MaxRanks {
		settle(epoch, 1+epoch)
	}
	settle(10, 1) // as those of epoch 0
	if got := c.m.Sizes().Plans; got != 3 {
		t.Fatalf("%d plans", got)
	}
	settle(11, 7) // until epoch 1 is gone, since epoch 10 has the nodes of epoch 0
	for epoch, want := range map[int]bool{0: false, 1: false, 10: true, 11: true} {
		if _, ok := c.m.SettledPlan(view(epoch, meta.MaxRanks)); ok != want {
			t.Errorf("epoch %d is settled: %v", epoch, ok)
		}
	}
}

// Of a full queue's readers those are forgotten that hold nothing and were
// silent for longest; never one that holds a unit.
func TestReaderBounds(t *testing.T) {
	c := founded(t, 1)
	c.do(&state.OpenQueue{View: view(1, 1), Generation: 1, Units: 2 * state.MaxReaders, Policy: "flow"})
	step := func(reader int, take int64) *state.TakeUnit {
		return &state.TakeUnit{View: view(1, 1), Reader: fmt.Sprint(reader), Node: id(1), Take: take, Nonce: 1}
	}
	knows := func(reader int) bool {
		_, ok := c.m.Reader(view(1, 1), fmt.Sprint(reader))
		return ok
	}
	for n := range state.MaxReaders {
		take := int64(n)
		if n == 5 || n == 9 {
			take = -1
		}
		c.do(step(n, take))
	}
	c.do(step(state.MaxReaders, state.MaxReaders))
	if knows(5) || knows(9) || !knows(0) || !knows(state.MaxReaders) {
		t.Fatal("others were forgotten than those that held nothing")
	}
	c.do(step(state.MaxReaders+1, state.MaxReaders+1))
	c.refuse(meta.ErrBusy, step(state.MaxReaders+2, state.MaxReaders+2))
	c.do(&state.Health{ID: id(1)})
	c.do(&state.Health{ID: id(1), Up: true})
	c.do(step(state.MaxReaders+2, 0))
	q, _ := c.m.Queue(view(1, 1))
	if knows(0) || !knows(state.MaxReaders+1) || q.Readers != state.MaxReaders-state.MaxReaders/16+1 || q.Held != 1 {
		t.Fatalf("%+v", q)
	}
	if got := c.m.Sizes().Readers; got != q.Readers {
		t.Fatalf("%d readers", got)
	}
}

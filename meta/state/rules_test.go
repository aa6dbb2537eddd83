package state_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

// What no machine would accept is refused before it is in a log.
func TestEncodeRefuses(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	registration := json.RawMessage("{}")
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
		{"a token for no node", &state.Token{Hash: index(1), Expires: 1}},
		{"a token of too many uses", &state.Token{Hash: index(1), Expires: 1, Uses: state.MaxUses + 1}},
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
		{"a beginning of no node", &state.Begin{Addr: "h:1", Life: 1}},
		{"a beginning nowhere", &state.Begin{ID: id(1), Life: 1}},
		{"a beginning of no life", &state.Begin{ID: id(1), Addr: "h:1"}},
		{"a beginning on a host with a blank", signedBy(id(1), &state.Begin{ID: id(1), Addr: "h:1", Life: 1, Called: "a b"})},
		{"a move to nowhere", &state.Move{ID: id(1)}},
		{"a drain of no node", &state.Drain{}},
		{"a removal of no node", &state.Remove{}},
		{"the health of no node", &state.Health{}},
		{"the pool of no node", signedBy(id(1), &state.OfferPool{Bytes: 1})},
		{"a quota of less than nothing", signedBy(id(1), &state.SetQuota{Name: "j", Quota: -1})},
		{"a pool of less than nothing", signedBy(id(1), &state.OfferPool{ID: id(1), Bytes: -1})},
		{"a dataset without name", &state.PutDataset{Registration: registration, Index: index(1)}},
		{"a dataset with a slash", &state.PutDataset{Name: "a/b", Registration: registration, Index: index(1)}},
		{"a dataset without registration", &state.PutDataset{Name: "d", Index: index(1)}},
		{"a registration that is no JSON", &state.PutDataset{Name: "d", Registration: json.RawMessage("{"), Index: index(1)}},
		{"a long registration", &state.PutDataset{Name: "d", Registration: json.RawMessage(`"` + strings.Repeat("x", state.MaxRegistration) + `"`), Index: index(1)}},
		{"a dataset without index", &state.PutDataset{Name: "d", Registration: registration}},
		{"an index of odd digits", &state.PutDataset{Name: "d", Registration: registration, Index: index(1)[1:]}},
		{"an index of less than nothing", &state.PutDataset{Name: "d", Registration: registration, Index: index(1), IndexBytes: -1}},
		{"the removal of no dataset", &state.RemoveDataset{}},
		{"a claim of no ranks", &state.Claim{Dataset: "d", Node: id(1)}},
		{"a claim past the ranks", &state.Claim{Dataset: "d", Ranks: 2, Rank: 2, Node: id(1)}},
		{"a claim of too many ranks", &state.Claim{Dataset: "d", Ranks: meta.MaxRanks + 1, Node: id(1)}},
		{"a claim for no node", &state.Claim{Dataset: "d", Ranks: 2}},
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
		{"a plan on no node", &state.Settle{View: view(1, 2), Nodes: state.Runs{{Count: 2}}}},
		{"no view to unsettle", &state.Unsettle{}},
		{"a queue of no view", &state.OpenQueue{View: "d", Units: 1, Policy: "flow"}},
		{"a queue of too many units", &state.OpenQueue{View: view(1, 2), Units: state.MaxUnits + 1, Policy: "flow"}},
		{"a queue without policy", &state.OpenQueue{View: view(1, 2), Units: 1}},
		{"a step of no reader", &state.TakeUnit{View: view(1, 2), Node: id(1)}},
		{"a step of a long reader", &state.TakeUnit{View: view(1, 2), Reader: long, Node: id(1)}},
		{"a step of a reader of bytes", &state.TakeUnit{View: view(1, 2), Reader: "\xff", Node: id(1)}},
		{"a step on no node", &state.TakeUnit{View: view(1, 2), Reader: "w"}},
		{"a step to unit -2", &state.TakeUnit{View: view(1, 2), Reader: "w", Node: id(1), Take: -2}},
		{"a step past all units", &state.TakeUnit{View: view(1, 2), Reader: "w", Node: id(1), Take: state.MaxUnits}},
		{"a step past all ranks", &state.TakeUnit{View: view(1, 2), Reader: "w", Node: id(1), Rank: meta.MaxRanks}},
		{"a step in a long view", &state.TakeUnit{View: long, Reader: "w", Node: id(1)}},
		{"no reader leaves", &state.LeaveQueue{View: view(1, 2)}},
		{"a reader leaves no queue", &state.LeaveQueue{Reader: "w"}},
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

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Those that follow nodes and datasets do not wake up for each file of the pool.
func TestFilesOfThePoolAreAChangeOfTheirOwn(t *testing.T) {
	c := pooled(t, "maps=2")
	c.do(signedBy(other, &state.MakeStage{Job: "j", Name: meta.BlobDir, Nonce: 3}))
	for _, tt := range []struct {
		name    string
		command state.Command
		any     bool
		cluster bool
	}{
		{"a map", commitOf(0, 0, other, 5), true, false},
		{"the map again", commitOf(0, 1, other, 5), false, false},
		{"a blob", putOf(other, put(other, "k", 1)), true, false},
		{"a blob in place of it", putOf(other, put(other, "k", 2)), true, false},
		{"a map goes", signedBy(other, &state.DropMap{StageName: stageName, Map: 0, Sum: 5}), true, false},
		{"a stage", signedBy(other, &state.MakeStage{Job: "j", Name: "more", Nonce: 4}), true, true},
	} {
		all, cluster := c.m.Changed(), c.m.ClusterChanged()
		c.do(tt.command)
		if isClosed(all) != tt.any || isClosed(cluster) != tt.cluster {
			t.Errorf("%s: changed %v, the cluster %v", tt.name, isClosed(all), isClosed(cluster))
		}
	}
}

func TestChanged(t *testing.T) {
	c := founded(t, 1)
	c.do(&state.OpenQueue{View: view(1, 1), Generation: 1, Units: 3, Policy: "flow"})
	for _, tt := range []struct {
		name           string
		command        state.Command
		cluster, queue bool
	}{
		{"a setting", &state.Setting{Key: "k", Value: "v"}, true, false},
		{"the same again", &state.Setting{Key: "k", Value: "v"}, false, false},
		{"a step", &state.TakeUnit{View: view(1, 1), Reader: "w", Node: id(1), Nonce: 1}, false, true},
		{"the same step", &state.TakeUnit{View: view(1, 1), Reader: "w", Node: id(1), Nonce: 1}, false, false},
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
	if !isClosed(token) || c.m.Sizes().Tokens != 0 {
		t.Error("a token expired, and the change was not told")
	}
}

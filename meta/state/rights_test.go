package state_test

import (
	"errors"
	"fmt"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

// signedBy is a command as the leader puts it into the log for a node.
func signedBy(node string, c state.Command) state.Command {
	state.Sign(c, state.Sender{Node: node}, state.Version)
	return c
}

func byLeader(node string, c state.Command) state.Command {
	state.Sign(c, state.Sender{Node: node, Leads: true}, state.Version)
	return c
}

// The nodes of roled, by what they are.
var operator, leader, hostile, other = id(1), id(2), id(3), id(4)

// roled is a cluster of version 4: an operator, and members, one of whom leads.
// The last has a reader in the queue of view(1, 2).
func roled(t testing.TB) *cluster {
	c := newCluster(t)
	admit := func(n int, token string) {
		c.do(byLeader(operator, &state.Admit{TokenHash: token, Node: nodeOf(n), Speaks: state.Version}))
	}
	c.do(byLeader(operator, &state.Found{Cluster: state.Cluster{ID: "c", CA: "ca"}}))
	admit(1, "")
	c.do(signedBy(operator, &state.Token{Hash: index(1), Expires: 1 << 62, Uses: 8, Role: state.Member}))
	for n := 2; n <= 4; n++ {
		admit(n, index(1))
	}
	c.do(signedBy(hostile, &state.PutDataset{Name: "d", Registration: []byte(`{}`), Index: index(1)}))
	c.do(signedBy(other, &state.OpenQueue{View: view(1, 2), Generation: 1, Units: 10, Policy: "flow"}))
	c.do(signedBy(other, &state.TakeUnit{View: view(1, 2), Reader: "w", Node: other, Take: 3, Nonce: 1}))
	return c
}

// A permission is who may send one command: each of the four nodes of roled, and
// the leader for the cluster.
type permission struct {
	name    string
	command func() state.Command
	may     string // of "operator", "member", "self", "leader", by their first letters
}

// permissions are about the node other where a command is about one.
func permissions() []permission {
	all := []string{operator, leader, hostile, other}
	return []permission{
		{"Found", func() state.Command { return &state.Found{Cluster: state.Cluster{ID: "c", CA: "ca"}} }, "l"},
		{"Token", func() state.Command {
			return &state.Token{Hash: index(2), Expires: 1 << 62, Uses: 1, Role: state.Member}
		}, "o"},
		{"DropToken", func() state.Command { return &state.DropToken{Hash: index(1)} }, "o"},
		{"Admit", func() state.Command {
			return &state.Admit{TokenHash: index(1), Node: nodeOf(9), Speaks: state.Version}
		}, "l"},
		{"Move", func() state.Command { return &state.Move{ID: other, Addr: "h:2"} }, "sl"},
		{"Drain", func() state.Command { return &state.Drain{ID: other, Drained: true} }, "o"},
		{"Remove", func() state.Command { return &state.Remove{ID: other} }, "o"},
		{"Promote", func() state.Command {
			return &state.Promote{ID: other, Voters: state.Voters{Voters: all}}
		}, "omsl"},
		{"Health", func() state.Command { return &state.Health{ID: other} }, "sl"},
		{"Begin", func() state.Command { return &state.Begin{ID: other, Addr: "h:3", Life: 9} }, "sl"},
		{"OfferPool", func() state.Command { return &state.OfferPool{ID: other, Bytes: 1} }, "sl"},
		{"PutDataset", func() state.Command {
			return &state.PutDataset{Name: "e", Registration: []byte(`{}`), Index: index(2)}
		}, "omsl"},
		{"PutDataset that refreshes", func() state.Command {
			return &state.PutDataset{Name: "d", Registration: []byte(`{}`), Index: index(3), Generation: 1}
		}, "omsl"},
		{"RemoveDataset", func() state.Command { return &state.RemoveDataset{Name: "d", Generation: 1} }, "o"},
		{"Claim", func() state.Command {
			return &state.Claim{Dataset: "d", Generation: 1, Ranks: 2, Rank: 1, Node: other}
		}, "sl"},
		{"Settle", func() state.Command {
			return &state.Settle{View: view(3, 2), Generation: 1, Nodes: state.Runs{{Node: other, Count: 2}}}
		}, "omsl"},
		{"Unsettle", func() state.Command { return &state.Unsettle{View: view(3, 2)} }, "omsl"},
		{"OpenQueue", func() state.Command {
			return &state.OpenQueue{View: view(2, 2), Generation: 1, Units: 10, Policy: "flow"}
		}, "omsl"},
		{"Step", func() state.Command {
			return &state.TakeUnit{View: view(1, 2), Reader: "w", Node: other, Finish: true, Take: 4, Nonce: 2}
		}, "sl"},
		{"LeaveQueue", func() state.Command { return &state.LeaveQueue{View: view(1, 2), Reader: "w"} }, "sl"},
		{"LeaveQueue of an unknown reader", func() state.Command { return &state.LeaveQueue{View: view(1, 2), Reader: "x"} }, "omsl"},
		{"ResetQueue", func() state.Command { return &state.ResetQueue{View: view(1, 2)} }, "omsl"},
		{"DropQueue", func() state.Command { return &state.DropQueue{View: view(1, 2)} }, "o"},
		{"Setting", func() state.Command { return &state.Setting{Key: "k", Value: "v"} }, "o"},
		{"MakeJob", func() state.Command { return &state.MakeJob{Node: other, Name: "j", Nonce: 1} }, "sl"},
		{"DropJob", func() state.Command { return &state.DropJob{Name: "j"} }, "omsl"},
		{"SetQuota", func() state.Command { return &state.SetQuota{Name: "j", Quota: 1} }, "omsl"},
		{"ReserveQuota", func() state.Command { return &state.ReserveQuota{Node: other, Name: "j", Asked: 1} }, "sl"},
		{"UseJob", func() state.Command { return &state.UseJob{Node: other, Name: "j"} }, "sl"},
		{"MakeStage", func() state.Command { return &state.MakeStage{Job: "j", Name: "s"} }, "omsl"},
		{"DropStage", func() state.Command { return &state.DropStage{StageName: stageName} }, "omsl"},
		{"SpecifyStage", func() state.Command { return &state.SpecifyStage{StageName: stageName, Spec: "maps=1"} }, "omsl"},
		{"CommitMaps", func() state.Command {
			return &state.CommitMaps{Maps: state.MapsByStage{{Stage: stageNumber, Maps: state.Commits{{Writer: other, Nodes: []string{other}}}}}}
		}, "sl"},
		{"BeginStage", func() state.Command { return &state.BeginStage{StageName: stageName} }, "omsl"},
		{"SealStage", func() state.Command { return &state.SealStage{StageName: stageName} }, "omsl"},
		{"ResetStage", func() state.Command { return &state.ResetStage{StageName: stageName} }, "omsl"},
		{"KeepCopy", func() state.Command { return &state.KeepCopy{StageName: stageName, Node: other} }, "sl"},
		{"DropMap", func() state.Command { return &state.DropMap{StageName: stageName} }, "omsl"},
		{"PutBlobs", func() state.Command {
			return &state.PutBlobs{StageName: blobs, Node: other, Maps: state.Commits{{Writer: other, Nodes: []string{other}, Name: "k"}}}
		}, "sl"},
		{"DropBlob", func() state.Command { return &state.DropBlob{StageName: blobs, Blob: state.Blob{Name: "k"}} }, "omsl"},
		{"Upgrade", func() state.Command { return &state.Upgrade{To: state.Version, Nodes: all} }, "l"},
	}
}

// Each kind of command is tried by a node of each role, as itself, and by the
// leader for the cluster: a command of a node that may not send it is refused before it is in the
// log, and by the machine if it is in there all the same, and nothing has changed. A
// kind that has no row fails the test.
func TestRights(t *testing.T) {
	rows := make(map[string]bool)
	for _, p := range permissions() {
		c := p.command()
		rows[fmt.Sprintf("%T", c)] = true
		for _, by := range []struct {
			as, node string
			leads    bool
		}{{"operator", operator, false}, {"member", hostile, false}, {"self", other, false}, {"leader", leader, true}} {
			may := false
			for _, letter := range p.may {
				may = may || byte(letter) == by.as[0]
			}
			p.try(t, by.as, state.Sender{Node: by.node, Leads: by.leads}, may)
		}
	}
	for _, seed := range state.Kinds() {
		if !rows[fmt.Sprintf("%T", seed)] {
			t.Errorf("no row says which nodes may send %T", seed)
		}
	}
}

func (p permission) try(t *testing.T, as string, by state.Sender, may bool) {
	t.Helper()
	c, command := roled(t), p.command()
	state.Sign(command, by, state.Version)
	before, early := c.m.Hash(), c.m.May(command)
	_, err := c.try(command)
	if denied := errors.Is(err, meta.ErrDenied); denied == may || (early == nil) != may {
		t.Errorf("%s by the %s: %v; before it is in the log: %v", p.name, as, err, early)
	}
	if !may && c.m.Hash() != before {
		t.Errorf("%s by the %s is refused, and has changed something", p.name, as)
	}
}

// A sender that is no node of the cluster, or was one, is refused whatever it sends.
func TestRightsOfStrangers(t *testing.T) {
	for _, p := range permissions() {
		p.try(t, "stranger", state.Sender{Node: id(77)}, false)
		c := roled(t)
		c.do(signedBy(operator, &state.Remove{ID: hostile}))
		command := p.command()
		state.Sign(command, state.Sender{Node: hostile, Leads: true}, state.Version)
		if _, err := c.try(command); !errors.Is(err, meta.ErrDenied) {
			t.Errorf("%s by a removed node: %v", p.name, err)
		}
	}
}

// A token lets nodes in with its own role, the first node is an operator, and an
// operator remains.
func TestRoles(t *testing.T) {
	c := roled(t)
	c.do(signedBy(operator, &state.Token{Hash: index(2), Expires: 1 << 62, Uses: 1, Role: state.Operator}))
	c.refuse(meta.ErrBusy, signedBy(operator, &state.Remove{ID: operator}))
	c.do(byLeader(leader, &state.Admit{TokenHash: index(2), Node: nodeOf(9), Speaks: state.Version}))
	for node, want := range map[string]state.Role{operator: state.Operator, leader: state.Member, id(9): state.Operator} {
		if n, _ := c.m.Node(node); n.Role != want {
			t.Errorf("node %s is %q, not %s", node, n.Role, want)
		}
	}
	c.refuse(meta.ErrDenied, byLeader(leader, &state.Admit{TokenHash: index(1), Node: nodeOf(10)})) // an older release
	c.m = through(t, c.m)
	c.do(signedBy(id(9), &state.Remove{ID: operator}))
	c.refuse(meta.ErrBusy, signedBy(id(9), &state.Remove{ID: id(9)}))
}

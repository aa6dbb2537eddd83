package group

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
	"rankfs/test/eventually"
)

// joined is a node that a token of that role has let in.
func joined(t *testing.T, by *node, number int, role state.Role) *node {
	t.Helper()
	token, err := by.group.MakeToken(t.Context(), time.Hour, 1, role)
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, number)
	if err := n.join(by, token); err != nil {
		t.Fatal(err)
	}
	return n
}

// tries has a node send the leader a command that says what it likes, signed by
// any node.
func (n *node) tries(t *testing.T, by state.Sender, c state.Command) (err error) {
	t.Helper()
	state.Sign(c, by, state.Version)
	state.Stamp(c, 1)
	data, err := state.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a leader answers", func() bool {
		err = n.group.AskLeader(t.Context(), callApply, data, nil)
		return !errors.Is(err, meta.ErrUnavailable)
	})
	return err
}

// A member with a certificate that is good sends the leader every command there
// is, for another node and in the name of an operator, of the leader, and its own.
// What is not its to say is refused over the wire, and nothing has changed.
func TestAHostileMember(t *testing.T) {
	first := newNode(t, 0).found()
	hostile, other := joined(t, first, 1, state.Member), joined(t, first, 2, state.Member)
	if err := put(other, "d"); err != nil {
		t.Fatal("a member registers no dataset:", err)
	}
	view := func(epoch int) string {
		return fmt.Sprintf("d@epoch=%d,ranks=2,seed=0,order=full,step=4,tail=drop,assign=local", epoch)
	}
	for _, c := range []state.Command{
		&state.OpenQueue{View: view(1), Generation: 1, Units: 9, Policy: "flow"},
		&state.TakeUnit{View: view(1), Reader: "w", Node: other.id, Take: 1, Nonce: 1},
	} {
		if _, err := other.group.Do(t.Context(), c); err != nil {
			t.Fatalf("%T: %v", c, err)
		}
	}
	token := first.token(3)
	hash := fmt.Sprintf("%x", token.Hash())
	stage := state.StageName{Job: "j", Name: "s"}
	blobs := state.StageName{Job: "j", Name: meta.BlobDir}
	blob := func(of *node) state.Command {
		return &state.PutBlobs{StageName: blobs, Node: of.id, Maps: state.Commits{{Writer: of.id, Nodes: []string{of.id}, Name: "k"}}}
	}
	stranger := state.Node{ID: "00000000000000ff", Host: "h", Addr: "127.0.0.1:1", Key: "k"}
	forbidden := []func() state.Command{
		func() state.Command { return &state.Found{Cluster: state.Cluster{ID: "c", CA: "ca"}} },
		func() state.Command {
			return &state.Token{Hash: fmt.Sprintf("%064x", 1), Expires: 1 << 62, Uses: 1, Role: state.Operator}
		},
		func() state.Command { return &state.DropToken{Hash: hash} },
		func() state.Command { return &state.Admit{TokenHash: hash, Node: stranger, Speaks: state.Version} },
		func() state.Command { return &state.Move{ID: other.id, Addr: "127.0.0.1:1"} },
		func() state.Command { return &state.Drain{ID: other.id, Drained: true} },
		func() state.Command { return &state.Remove{ID: first.id} },
		func() state.Command { return &state.Remove{ID: other.id} },
		func() state.Command { return &state.Health{ID: other.id} },
		func() state.Command { return &state.Begin{ID: other.id, Addr: "127.0.0.1:1", Life: 9} },
		func() state.Command { return &state.OfferPool{ID: other.id, Bytes: 1} },
		func() state.Command { return &state.RemoveDataset{Name: "d", Generation: 1} },
		func() state.Command {
			return &state.Claim{Dataset: "d", Generation: 1, Ranks: 2, Rank: 1, Node: other.id}
		},
		func() state.Command {
			return &state.TakeUnit{View: view(1), Reader: "w", Node: other.id, Finish: true, Take: 2, Nonce: 2}
		},
		func() state.Command { return &state.LeaveQueue{View: view(1), Reader: "w"} },
		func() state.Command { return &state.DropQueue{View: view(1)} },
		func() state.Command { return &state.Setting{Key: "queue.policy", Value: "probability"} },
		func() state.Command { return &state.MakeJob{Node: other.id, Name: "j", Nonce: 1} },
		func() state.Command { return &state.UseJob{Node: other.id, Name: "j", Open: true} },
		func() state.Command {
			return &state.CommitMaps{Maps: state.MapsByStage{{Stage: 1, Maps: state.Commits{{Writer: other.id, Nodes: []string{other.id}}}}}}
		},
		func() state.Command { return &state.KeepCopy{StageName: stage, Node: other.id} },
		func() state.Command { return blob(other) },
		func() state.Command {
			return &state.Upgrade{To: state.Version, Nodes: []string{first.id, hostile.id, other.id}}
		},
	}
	own := []func() state.Command{
		func() state.Command { return &state.Move{ID: hostile.id, Addr: hostile.addr} },
		func() state.Command { return &state.Health{ID: hostile.id, Life: 5} },
		func() state.Command {
			return &state.Promote{ID: hostile.id, Voters: state.Voters{Voters: []string{hostile.id}}}
		},
		func() state.Command { return &state.Begin{ID: hostile.id, Addr: hostile.addr, Life: 9} },
		func() state.Command {
			return &state.PutDataset{Name: "e", Registration: []byte(`{}`), Index: fmt.Sprintf("%064x", 2)}
		},
		func() state.Command {
			return &state.PutDataset{Name: "d", Registration: []byte(`{}`), Index: fmt.Sprintf("%064x", 1), IndexBytes: 1, Generation: 1}
		},
		func() state.Command {
			return &state.Claim{Dataset: "d", Generation: 1, Ranks: 2, Rank: 0, Node: hostile.id}
		},
		func() state.Command {
			return &state.Settle{View: view(2), Generation: 1, Nodes: state.Runs{{Node: hostile.id, Count: 2}}}
		},
		func() state.Command { return &state.Unsettle{View: view(2)} },
		func() state.Command {
			return &state.OpenQueue{View: view(3), Generation: 1, Units: 9, Policy: "flow"}
		},
		func() state.Command {
			return &state.TakeUnit{View: view(3), Reader: "v", Node: hostile.id, Take: 1, Nonce: 1}
		},
		func() state.Command { return &state.LeaveQueue{View: view(3), Reader: "v"} },
		func() state.Command { return &state.ResetQueue{View: view(3)} },
		func() state.Command { return &state.OfferPool{ID: hostile.id, Bytes: 1} },
		func() state.Command { return &state.MakeJob{Node: hostile.id, Name: "j", Nonce: 1} },
		func() state.Command { return &state.SetQuota{Name: "j", Quota: 1 << 30} },
		func() state.Command { return &state.ReserveQuota{Node: hostile.id, Name: "j", Asked: 1} },
		func() state.Command { return &state.UseJob{Node: hostile.id, Name: "j", Open: true} },
		func() state.Command { return &state.MakeStage{Job: "j", Name: "s", Nonce: 1} },
		func() state.Command { return &state.SpecifyStage{StageName: stage, Spec: "maps=1"} },
		func() state.Command {
			if err := hostile.group.Ready(t.Context()); err != nil {
				t.Error(err)
			}
			j, _ := hostile.machine.PoolJob("j")
			g, _ := hostile.machine.Stage(j.Number, "s")
			return &state.CommitMaps{Maps: state.MapsByStage{{Stage: g.Number, Maps: state.Commits{{Writer: hostile.id, Nodes: []string{hostile.id}}}}}}
		},
		func() state.Command { return &state.BeginStage{StageName: stage} },
		func() state.Command { return &state.SealStage{StageName: stage} },
		func() state.Command { return &state.KeepCopy{StageName: stage, Node: hostile.id, Has: true} },
		func() state.Command { return &state.DropMap{StageName: stage} },
		func() state.Command { return &state.MakeStage{Job: "j", Name: meta.BlobDir, Nonce: 1} },
		func() state.Command { return blob(hostile) },
		func() state.Command { return &state.DropBlob{StageName: blobs, Blob: state.Blob{Name: "k"}} },
		func() state.Command { return &state.ResetStage{StageName: stage} },
		func() state.Command { return &state.DropStage{StageName: stage} },
		func() state.Command { return &state.DropJob{Name: "j"} },
	}
	leader := first.group.Leader()
	eventually.True(t, "all votes are given", func() bool { return vote([]*node{first, hostile, other}, 3) }) // by which a voter may promote
	tried := make(map[string]bool)
	for _, make := range forbidden {
		c := make()
		tried[fmt.Sprintf("%T", c)] = true
		for _, by := range []state.Sender{{Node: hostile.id}, {Node: first.id}, {Node: other.id}, {Node: leader, Leads: true}} {
			if err := hostile.tries(t, by, make()); !errors.Is(err, meta.ErrDenied) {
				t.Errorf("%T in the name of %+v: %v", c, by, err)
			}
		}
	}
	for _, make := range own {
		c := make()
		tried[fmt.Sprintf("%T", c)] = true
		if err := hostile.tries(t, state.Sender{Node: hostile.id}, c); err != nil {
			t.Errorf("%T of its own: %v", c, err)
		}
	}
	for _, kind := range kinds(t) {
		if c := fmt.Sprintf("%T", kind); !tried[c] {
			t.Errorf("no row tries %s", c)
		}
	}
	if nodes, tokens := first.machine.Nodes(), first.machine.Tokens(); len(nodes) != 3 || len(tokens) != 1 {
		t.Errorf("nodes %+v, tokens %+v", nodes, tokens)
	}
	if n, _ := first.machine.Node(hostile.id); n.Role != state.Member {
		t.Errorf("the hostile member has made itself %s", n.Role)
	}
}

// The only operator is lost for good. What is an operator's is refused with the way
// back; when two of the three voters have said it, one of them is an operator, with a
// certificate for that, and takes the lost one out of the cluster and lets others in.
func TestAnOperatorIsLost(t *testing.T) {
	first := newNode(t, 0).found()
	second, third, fourth := joined(t, first, 1, state.Member), joined(t, first, 2, state.Member), joined(t, first, 3, state.Member)
	if err := first.group.AwaitVotes(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.stop()
	eventually.True(t, "the operator is known to be down, and others vote", func() bool {
		n, _ := second.machine.Node(first.id)
		return !n.Up && second.group.Leader() != "" && isVoter(second.group.servers()[fourth.id])
	})
	_, err := second.group.MakeToken(t.Context(), time.Hour, 1, state.Member)
	if !errors.Is(err, meta.ErrDenied) || !strings.Contains(err.Error(), "rankfs node promote") {
		t.Errorf("a member makes a token: %v", err)
	}
	for _, n := range []*node{third, fourth} {
		if _, err := n.group.Do(t.Context(), &state.Promote{ID: second.id}); err != nil {
			t.Fatal(err)
		}
	}
	eventually.True(t, "its certificate is an operator's", func() bool { return second.identity.Role() == trust.RoleOperator })
	token := second.token(1)
	leaves(second, &state.Remove{ID: first.id})
	if err := newNode(t, 4).join(second, token); err != nil {
		t.Error("a node is not let in:", err)
	}
	if _, err := third.group.MakeToken(t.Context(), time.Hour, 1, state.Member); !errors.Is(err, meta.ErrDenied) {
		t.Errorf("another member makes a token: %v", err)
	}
}

// What a person asks of a member's daemon is refused with the name of an operator
// to ask, be the member the leader.
func TestAMemberSendsOneToAnOperator(t *testing.T) {
	first := newNode(t, 0).found()
	member := joined(t, first, 1, state.Member)
	_, err := member.group.MakeToken(t.Context(), time.Hour, 1, state.Member)
	if !errors.Is(err, meta.ErrDenied) {
		t.Fatal(err)
	}
	for _, c := range []state.Command{
		&state.Drain{ID: first.id, Drained: true}, &state.Remove{ID: first.id}, &state.Setting{Key: "k", Value: "v"},
	} {
		if _, err := member.group.Do(t.Context(), c); !errors.Is(err, meta.ErrDenied) {
			t.Errorf("%T: %v", c, err)
		}
	}
	if operator := joined(t, first, 2, state.Operator); operator.token(1).Reveal() == "" {
		t.Error("an operator makes no token")
	}
}

// A certificate says the role of its node, and a renewed one says it too. One of
// another role than the cluster has noted is refused.
func TestRolesInCertificates(t *testing.T) {
	first := newNode(t, 0).found()
	member, operator := joined(t, first, 1, state.Member), joined(t, first, 2, state.Operator)
	for n, want := range map[*node]trust.Role{member: trust.RoleMember, operator: trust.RoleOperator} {
		for range 2 {
			if got := n.identity.Role(); got != want {
				t.Errorf("node %s has a certificate for a %s, not %s", n.id, got, want)
			}
			if err := n.group.renewal.once(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The first node's is of the release before, and is renewed to what it is.
	if err := first.group.renewal.once(t.Context()); err != nil || first.identity.Role() != trust.RoleOperator {
		t.Errorf("the first node is %s, %v", first.identity.Role(), err)
	}
	request, err := member.identity.Request()
	if err != nil {
		t.Fatal(err)
	}
	r, err := trust.ParseRequest(request)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := first.group.config.Authority.Sign(r, trust.RoleOperator, time.Now(), 0)
	if err == nil {
		err = member.identity.Renew(forged, member.group.config.Authority, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	member.stop()
	member.start(false)
	if err := member.group.Begun(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := member.group.Do(t.Context(), &state.PutDataset{Name: "x", Registration: []byte("{}"), Index: fmt.Sprintf("%064x", 1)}); !errors.Is(err, meta.ErrDenied) {
		t.Errorf("a certificate of another role: %v", err)
	}
}

// kinds has a command of each kind that this release reads from a log.
func kinds(t *testing.T) (all []state.Command) {
	t.Helper()
	m := state.Speaking(state.Version)
	for kind := range 256 {
		c, err := m.Decode(append([]byte{state.Version, byte(kind)}, `{"By":"n"}`...))
		switch {
		case err == nil:
			all = append(all, c)
		case !errors.Is(err, meta.ErrUnavailable): // which is said of a kind that there is not
			t.Fatalf("kind %d: %v", kind, err)
		}
	}
	return all
}

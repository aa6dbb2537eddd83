package group

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/test/eventually"
)

// A mute is a listener of nothing.
type mute struct{ closed chan struct{} }

func (m mute) Accept() (net.Conn, error) { <-m.closed; return nil, io.EOF }
func (m mute) Close() error              { close(m.closed); return nil }
func (m mute) Addr() net.Addr            { return streamAddr("nowhere") }

// A member without a vote speaks Raft to the nodes that vote, as a leader of a later term
// does: it has a command in an operator's name for their logs, and, as a leader, wants the
// authority's key. None hears it, and the cluster goes on.
func TestAMemberWithoutAVoteSpeaksRaft(t *testing.T) {
	first := newNode(t, 0).found()
	nodes := []*node{first, joined(t, first, 1, state.Operator), joined(t, first, 2, state.Operator)}
	hostile := joined(t, first, 3, state.Member)
	eventually.True(t, "three vote, as all know", func() bool { return vote(append(nodes, hostile), 3) })
	if isVoter(first.group.servers()[hostile.id]) || hostile.group.config.Authority.CanSign() {
		t.Fatal("the member votes, or has the key")
	}
	eventually.True(t, "it knows the others", func() bool { return len(hostile.machine.Nodes()) == 4 })
	self := raftAddress(hostile.id, hostile.addr)
	network := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: stream{Listener: mute{make(chan struct{})}, self: self, dial: func(ctx context.Context, addr, id string) (net.Conn, error) {
			return hostile.group.replica.dial(ctx, addr, id)
		}}, MaxPool: 1, Timeout: 10 * time.Second, MaxRPCsInFlight: 1,
	})
	defer network.Close()
	for _, n := range nodes {
		term, last := n.group.raft.CurrentTerm(), n.group.raft.LastIndex()
		c := &state.Setting{Key: "queue.policy", Value: "stolen"}
		state.Sign(c, state.Sender{Node: first.id}, state.Version)
		state.Stamp(c, 1<<61)
		data, err := state.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		header := raft.RPCHeader{ProtocolVersion: 3, ID: []byte(hostile.id), Addr: []byte(self)}
		append := &raft.AppendEntriesRequest{
			RPCHeader: header, Term: term + 9, PrevLogEntry: last, PrevLogTerm: term, LeaderCommitIndex: last + 1,
			Entries: []*raft.Log{{Index: last + 1, Term: term + 9, Type: raft.LogCommand, Data: data}},
		}
		if err := network.AppendEntries(raft.ServerID(n.id), raftAddress(n.id, n.addr), append, new(raft.AppendEntriesResponse)); err == nil {
			t.Errorf("node %s takes what it sends for its log", n.id)
		}
		snapshot := &raft.InstallSnapshotRequest{RPCHeader: header, SnapshotVersion: 1, Term: term + 9, LastLogIndex: last + 1, LastLogTerm: term, Size: 1}
		if err := network.InstallSnapshot(raft.ServerID(n.id), raftAddress(n.id, n.addr), snapshot, new(raft.InstallSnapshotResponse), strings.NewReader("x")); err == nil {
			t.Errorf("node %s takes its snapshot", n.id)
		}
		var key []byte
		if err := hostile.group.calls.ask(t.Context(), n.id, callKey, struct{}{}, &key); err == nil || len(key) > 0 {
			t.Errorf("node %s gives it the authority's key (%v)", n.id, err)
		}
	}
	setInTime(nodes[1], "after")
	agree(t, append(nodes, hostile), "after")
	for _, n := range nodes {
		if n.machine.Setting("queue.policy") == "stolen" {
			t.Errorf("node %s has executed its command", n.id)
		}
	}
	if _, err := hostile.group.Do(t.Context(), &state.Setting{Key: "k", Value: "v"}); !errors.Is(err, meta.ErrDenied) {
		t.Errorf("a setting of a member: %v", err)
	}
}

// A node was away while another was given its vote, and leads by now. It does not know that
// one as a voter, hears from the others that it leads, and catches up.
func TestANodeThatWasAwayHearsANewVoter(t *testing.T) {
	nodes := cluster(t, 4)
	eventually.True(t, "three voters of four", func() bool { return vote(nodes, 3) })
	leader, rest := leading(t, nodes)
	var away, spare *node
	for _, n := range rest {
		if isVoter(leader.group.servers()[n.id]) {
			away = n
		} else {
			spare = n
		}
	}
	away.stop()
	eventually.True(t, "the spare one leads", func() bool {
		by, _ := leading(t, without(nodes, away))
		if by != spare && isVoter(by.group.servers()[spare.id]) {
			_ = by.group.raft.LeadershipTransferToServer(raft.ServerID(spare.id), raftAddress(spare.id, spare.addr)).Error()
		}
		return spare.group.Leads()
	})
	away.start(false)
	setInTime(spare, "after")
	agree(t, nodes, "after")
}

// When votes are said to be given all that vote know of it, also one that is late: two that
// do not know each other's votes would not hear each other if the leader died then.
func TestVotersKnowEachOther(t *testing.T) {
	w := newNetwork()
	linked := func(n *node) { n.net, n.times.look, n.times.dead = w, 3*time.Second, enough }
	nodes := clusterWith(t, 3, linked)
	eventually.True(t, "three vote", func() bool { return vote(nodes, 3) })
	leader, rest := leading(t, nodes)
	late, fourth := rest[0], newNode(t, 3)
	linked(fourth)
	token := leader.token(1)
	w.cut(leader.id, late.id)
	if err := fourth.join(leader, token); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the fourth is in", func() bool { return leader.group.servers()[fourth.id].ID != "" })
	time.AfterFunc(200*time.Millisecond, w.heal)
	if err := leader.group.AwaitVotes(t.Context()); err != nil {
		t.Fatal(err)
	}
	if late.group.servers()[fourth.id].ID == "" {
		t.Error("a node that votes does not know the configuration that is said to be right")
	}
}

func without(nodes []*node, one *node) (others []*node) {
	for _, n := range nodes {
		if n != one {
			others = append(others, n)
		}
	}
	return others
}

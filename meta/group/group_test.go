package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
	"rankfs/test/eventually"
)

// A node is one member of a test's cluster, in this process, with a port of its
// own on loopback.
type node struct {
	t        *testing.T
	dir, id  string
	machine  *state.Machine
	identity *trust.Identity
	port     *trust.Port
	group    *Group
	addr     string
	net      *network         // nil: nothing goes wrong
	ahead    func() time.Time // nil: the clock is right
	off      atomic.Int64     // for such a clock
	times    times
	life     uint64 // zero: another one each time it is started
	speaks   int    // zero: the newest version of commands
	opened   atomic.Pointer[Group]
	spoils   func(applied) any // what it answers to a node that sends a command; nil: what came of that
	fragile  bool              // its log is on a disk that forgets and fails
	disk     *platter          // of a fragile node
	logged   *pages            // its log goes there too; nil: to the test alone
}

// quick has a cluster of one process notice soon what it waits for, but patient with
// commands: all of its nodes may have to wait for the processor at once.
func quick() times {
	t := defaultTimes()
	t.patience = enough
	t.heartbeat, t.tick, t.dead, t.look = 400*time.Millisecond, 50*time.Millisecond, 1500*time.Millisecond, 500*time.Millisecond
	return t
}

// enough is more than anything takes that comes to pass, on a slow and busy machine too.
const enough = 2 * time.Minute

func newNode(t *testing.T, number int) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir(), id: fmt.Sprintf("%016x", 0xa0+number), times: quick()}
	var err error
	if n.identity, err = trust.OpenIdentity(n.trust(), n.id, fmt.Sprintf("host%d", number)); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) trust() string { return filepath.Join(n.dir, "trust") }

// found makes n the first node of a cluster.
func (n *node) found() *node {
	n.t.Helper()
	n.certify(n.t)
	n.start(true)
	return n
}

// certify makes an authority, which signs for n.
func (n *node) certify(t *testing.T) {
	t.Helper()
	a, err := trust.Create(n.trust(), time.Now())
	if err != nil {
		n.t.Fatal(err)
	}
	request, err := n.identity.Request()
	if err != nil {
		n.t.Fatal(err)
	}
	r, err := trust.ParseRequest(request)
	if err != nil {
		n.t.Fatal(err)
	}
	certificate, err := a.Sign(r, trust.RoleNode, time.Now(), 0)
	if err == nil {
		err = n.identity.Renew(certificate, a, time.Now())
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// join makes n a node of the cluster that other is of.
func (n *node) join(other *node, token trust.Token) error {
	n.addr = reserve(n.t)
	_, err := Join(n.t.Context(), n.trust(), other.addr, token, n.identity, n.addr, time.Now())
	if err == nil {
		n.start(false)
	}
	return err
}

// token is one that the cluster of n takes. A node that it lets in is an operator, so
// that tests may ask anything of any node.
func (n *node) token(uses int) trust.Token {
	n.t.Helper()
	token, err := n.group.MakeToken(n.t.Context(), time.Hour, uses, state.Operator)
	if err != nil {
		n.t.Fatal(err)
	}
	return token
}

func (n *node) start(founds bool) {
	n.t.Helper()
	if err := n.try(founds); err != nil {
		n.t.Fatal(err)
	}
}

// try is start for a node that may not start.
func (n *node) try(founds bool) error {
	n.t.Helper()
	a, err := trust.OpenAuthority(n.trust())
	if err != nil {
		return err
	}
	n.machine = state.Speaking(cmp.Or(n.speaks, state.Version))
	address := n.addr
	if address == "" {
		address = "127.0.0.1:0"
	}
	n.port, err = trust.Open(n.t.Context(), trust.Config{
		Address: address, Authority: a, Identity: n.identity, PendingPerHost: 64, Now: n.ahead,
		Allowed: n.machine.Admits,
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.addr = n.port.Addr().String()
	var out io.Writer = n.t.Output()
	if n.logged != nil {
		out = io.MultiWriter(out, n.logged)
	}
	log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelInfo})).With("at", n.id)
	c := Config{
		Dir: filepath.Join(n.dir, "raft"), Known: filepath.Join(n.dir, "known"), Self: state.Node{ID: n.id, Host: "host", Addr: n.addr, Life: n.life}, Machine: n.machine,
		Port: n.port, Authority: a, Identity: n.identity, Now: time.Now, Log: log, Handlers: n.speaker(),
	}
	c.medium = onDisk()
	if n.fragile {
		n.disk = newPlatter()
		c.medium = n.disk.medium()
	}
	if n.net != nil {
		c.Port = gate{n.port, n.id, n.net}
	}
	if n.ahead != nil {
		c.Now = n.ahead
	}
	n.group, err = open(n.t.Context(), c, founds, n.times)
	if err != nil {
		return errors.Join(err, n.port.Close())
	}
	n.opened.Store(n.group)
	n.t.Cleanup(n.stop)
	return nil
}

// hasBegun reports whether a node runs and has said that it was started.
func (n *node) hasBegun() bool { return n.group != nil && n.group.hasBegun() }

func (n *node) stop() {
	if n.group == nil {
		return
	}
	if err := errors.Join(n.group.Close(), n.port.Close()); err != nil {
		n.t.Errorf("close %s: %v", n.id, err)
	}
	n.group = nil
}

// reserve is an address at which no process listens.
func reserve(t *testing.T) string {
	t.Helper()
	p, err := trustPort(t)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (n *node) voters() (voters int) {
	for _, m := range n.group.Status().Members {
		if m.Voter {
			voters++
		}
	}
	return voters
}

// vote reports whether all nodes know of so many voters: a leader that alone knows of one may be
// lost before it has told another node.
func vote(nodes []*node, voters int) bool {
	for _, n := range nodes {
		if n.voters() != voters {
			return false
		}
	}
	return true
}

func cluster(t *testing.T, size int) []*node {
	t.Helper()
	return clusterWith(t, size, func(*node) {})
}

// clusterWith is a cluster of nodes that are made ready in some way.
func clusterWith(t *testing.T, size int, ready func(*node)) []*node {
	t.Helper()
	first := newNode(t, 0)
	ready(first)
	nodes := []*node{first.found()}
	token := nodes[0].token(size)
	for i := 1; i < size; i++ {
		n := newNode(t, i)
		ready(n)
		if err := n.join(nodes[0], token); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func put(n *node, name string) error {
	_, err := n.group.Do(n.t.Context(), &state.PutDataset{Name: name, Registration: []byte(`{}`), Index: fmt.Sprintf("%064x", 1), IndexBytes: 1})
	return err
}

func TestOneNodeAlone(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	n := newNode(t, 0).found()
	if err := put(n, "a"); err != nil {
		t.Fatal(err)
	}
	n.stop()
	n.start(false)
	if err := n.group.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := n.machine.Dataset("a"); !ok {
		t.Error("the dataset is gone after a restart")
	}
	n.stop()
}

func TestVotersAreKept(t *testing.T) {
	nodes := cluster(t, 4)
	eventually.True(t, "three voters of four", func() bool { return vote(nodes, 3) })
	if err := put(nodes[3], "a"); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		eventually.True(t, "the dataset is everywhere", func() bool { _, ok := n.machine.Dataset("a"); return ok })
	}
	leader, rest := leading(t, nodes)
	dead := rest[slices.IndexFunc(rest, func(n *node) bool { return isVoter(leader.group.servers()[n.id]) })]
	dead.stop()
	left := leader
	eventually.True(t, "the dead voter is replaced", func() bool {
		alive := 0
		for _, m := range left.group.Status().Members {
			if m.Voter && m.ID != dead.id {
				alive++
			}
			if m.Voter && m.ID == dead.id {
				return false
			}
		}
		return alive == 3
	})
	// Raft has a change of voters before it is agreed on, and with it what came before.
	eventually.True(t, "it is down", func() bool { n, _ := left.machine.Node(dead.id); return !n.Up })
}

func TestAnotherLeads(t *testing.T) {
	nodes := cluster(t, 3)
	eventually.True(t, "three voters", func() bool { return vote(nodes, 3) })
	leader, rest := leading(t, nodes)
	leader.stop()
	if err := put(rest[0], "after"); err != nil {
		t.Fatal(err)
	}
	joined := newNode(t, 9)
	if err := joined.join(rest[1], rest[1].token(1)); err != nil {
		t.Fatalf("the new leader cannot admit: %v", err)
	}
}

func TestWithoutAMajority(t *testing.T) {
	nodes := cluster(t, 3)
	eventually.True(t, "three voters", func() bool { return vote(nodes, 3) })
	if err := put(nodes[0], "before"); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the last has it", func() bool { _, ok := nodes[2].machine.Dataset("before"); return ok })
	nodes[0].stop()
	nodes[1].stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := nodes[2].group.Do(ctx, &state.Setting{Key: "k", Value: "v"})
	if !errors.Is(err, meta.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if _, ok := nodes[2].machine.Dataset("before"); !ok {
		t.Error("what was known is not any more")
	}
}

func TestNodesThatAreNotAdmitted(t *testing.T) {
	first := newNode(t, 0).found()
	token := first.token(1)
	second := newNode(t, 1)
	if err := second.join(first, token); err != nil {
		t.Fatal(err)
	}
	if err := newNode(t, 2).join(first, token); !errors.Is(err, meta.ErrDenied) || !strings.HasSuffix(err.Error(), "; make a new one with: rankfs token create") {
		t.Errorf("a used token: %v", err)
	}
	if err := newNode(t, 3).join(first, trust.NewToken(first.group.config.Authority.Fingerprint())); !errors.Is(err, meta.ErrDenied) || !strings.HasSuffix(err.Error(), "; make a new one with: rankfs token create") {
		t.Errorf("a forged token: %v", err)
	}
	if err := newNode(t, 4).join(first, trust.NewToken(trust.Fingerprint{1})); !errors.Is(err, meta.ErrDenied) {
		t.Errorf("another cluster's token: %v", err)
	}
}

func TestRemovedNodesStayOut(t *testing.T) {
	nodes := cluster(t, 2)
	leaves(nodes[0], &state.Remove{ID: nodes[1].id})
	eventually.True(t, "raft has it no more", func() bool { return len(nodes[0].group.servers()) == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := nodes[1].group.Do(ctx, &state.Setting{Key: "k", Value: "v"}); err == nil {
		t.Error("a removed node still writes")
	}
}

// What a node has open with others when it is removed ends.
func TestConnectionsWithARemovedNodeEnd(t *testing.T) {
	nodes := cluster(t, 2)
	listener := nodes[0].port.Listener(trust.Data)
	c, err := nodes[1].port.Dial(t.Context(), nodes[0].addr, nodes[0].id, trust.Data)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	leaves(nodes[0], &state.Remove{ID: nodes[1].id})
	accepted.SetReadDeadline(time.Now().Add(10 * time.Second)) // a failure need not take as long as the tests may
	if _, err := accepted.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a removed node is still connected: %v", err)
	}
}

// A cluster that was off for longer than certificates last comes back by itself:
// those who have the authority's key sign for themselves, and for the others.
func TestCertificatesThatHaveExpired(t *testing.T) {
	nodes := cluster(t, 4)
	eventually.True(t, "three voters of four", func() bool { return vote(nodes, 3) })
	if err := put(nodes[3], "before"); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		eventually.True(t, "all know it", func() bool { _, ok := n.machine.Dataset("before"); return ok })
	}
	for _, n := range nodes {
		n.stop()
	}
	later := func() time.Time { return time.Now().Add(10 * 24 * time.Hour) }
	for _, n := range nodes {
		n.ahead = later
		n.start(false)
	}
	for i, n := range nodes {
		eventually.True(t, "its certificate is good", func() bool { return n.identity.Until().After(later()) })
		if err := put(n, fmt.Sprint("after", i)); err != nil {
			t.Errorf("node %d: %v", i, err)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(m.Run()) }

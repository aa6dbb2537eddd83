package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rankfs/fetch/peers"
	"rankfs/meta/group"
	"rankfs/meta/state"
	"rankfs/meta/trust"
	"rankfs/meta/wire"
	"rankfs/shuffle/plan"
	"rankfs/shuffle/pool"
)

// A member is this node as one of its cluster. A node alone is a cluster of one,
// which listens on loopback.
type member struct {
	machine *state.Machine
	port    *trust.Port
	group   *group.Group
	wire    *wire.Client // to other nodes
	peers   *peers.Client
	server  *wire.Server // of what others ask for
	owners  *plan.Owners
	host    string // by which the node was admitted, and its cluster knows it
	called  string // what the host is called now
	joined  bool   // the cluster just now
	log     *slog.Logger
}

// openMember enters the cluster that the state directory is of, or joins the one
// that c names, or founds one. It listens on tcp.
func openMember(ctx context.Context, c Config, tcp *net.TCPListener, handlers map[string]group.Handler) (m *member, err error) {
	host := c.Host
	if host == "" {
		if host, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("host name: %w; say it with --host", err)
		}
	}
	m = &member{machine: state.Speaking(speaks), owners: new(plan.Owners), host: host, called: host, log: c.Log}
	id, err := nodeID(c.State)
	if err != nil {
		return nil, err
	}
	dir := c.trust()
	identity, err := trust.OpenIdentity(dir, id, host)
	if err != nil {
		return nil, err
	}
	authority, founds, err := m.enter(ctx, c, dir, identity)
	if err != nil {
		return nil, err
	}
	m.port, err = trust.Open(ctx, trust.Config{
		TCP: tcp, Authority: authority, Identity: identity, Log: c.Log,
		Allowed: m.machine.Admits,
	})
	if err != nil {
		return nil, err
	}
	self := state.Node{ID: id, Host: host, Addr: m.addr()}
	m.group, err = group.Open(ctx, group.Config{
		Dir: filepath.Join(c.State, "raft"), Known: knownNodes(c.State), Self: self, Machine: m.machine, Port: m.port,
		Authority: authority, Identity: identity, Handlers: handlers, Now: time.Now, Log: c.Log,
	}, founds)
	if err != nil {
		return nil, errors.Join(err, m.port.Close())
	}
	m.wire = wire.New(func(ctx context.Context, node string) (net.Conn, error) {
		return m.group.Dial(ctx, node, trust.Data)
	}, wire.Config{Log: c.Log})
	m.peers = peers.New(m.wire, peers.Config{})
	m.owners.Self = id
	m.owners.Follow(ownersOf(m.machine.Nodes()))
	m.wire.Follow(upOf(m.machine.Nodes()))
	return m, nil
}

// offer makes the server by which other nodes have the records and files of s, have find look
// through splits for them, and reach the shuffle pool, if this node has one.
func (m *member) offer(s peers.Store, find peers.Finder, p *pool.Pool) (err error) {
	var pooled wire.Calls
	var pushes wire.Pushes
	if p != nil {
		pooled, pushes = p.Calls()
	}
	limits := wire.Limits{Log: m.log, Name: func(c net.Conn) string {
		node, _ := trust.PeerID(c)
		return node
	}}
	m.server, err = wire.NewServer(limits, pushes, peers.Calls(s), peers.FindFor(find), pooled)
	return err
}

// serve answers the requests of other nodes until ctx is done.
func (m *member) serve(ctx context.Context) {
	if err := m.server.Serve(ctx, m.port.Listener(trust.Data)); err != nil {
		m.log.Error("other nodes get nothing from this one any more", "cause", err)
	}
}

// enter has this node be of the cluster that it is of, that it is to join, or that it
// is to found.
func (m *member) enter(ctx context.Context, c Config, dir string, identity *trust.Identity) (a *trust.Authority, founds bool, err error) {
	a, token, err := c.belongs()
	switch {
	case err != nil:
		return nil, false, err
	case a != nil && c.Join != "":
		m.log.Info("this node is of a cluster already, and does not join another", "cluster", a.Cluster())
		return a, false, nil
	case a != nil:
		return a, a.CanSign() && !began(c.State), nil
	case c.Join != "":
		a, err = group.Join(ctx, dir, c.Join, token, identity, reachable(c.Listen, m.called), time.Now())
		m.joined = err == nil
		return a, false, err
	}
	if a, err = trust.Create(dir, time.Now()); err != nil {
		return nil, false, err
	}
	return a, true, m.certify(a, identity)
}

// began reports whether there is a log, or other nodes are known: a node that was
// killed while it founded its cluster founds it again, one that has lost its log
// does not.
func began(dir string) bool {
	_, log := os.Stat(filepath.Join(dir, "raft"))
	_, known := os.Stat(knownNodes(dir))
	return log == nil || known == nil
}

// knownNodes is the list of where other nodes are.
func knownNodes(dir string) string { return filepath.Join(dir, "nodes") }

// certify gives the first node of a cluster its certificate.
func (m *member) certify(a *trust.Authority, identity *trust.Identity) error {
	der, err := identity.Request()
	if err != nil {
		return err
	}
	r, err := trust.ParseRequest(der)
	if err != nil {
		return err
	}
	role := trust.RoleOperator
	if m.machine.Speaks() < state.Signed {
		role = trust.RoleNode
	}
	certificate, err := a.Sign(r, role, time.Now(), 0)
	if err != nil {
		return err
	}
	return identity.Renew(certificate, a, time.Now())
}

// reachable is an address for others: where a node listens everywhere, by its
// host's name.
func reachable(addr, host string) string {
	h, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(h); h == "" || ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort(host, port)
	}
	return addr
}

// nodeID reads what this node is called, or makes it up.
func nodeID(dir string) (string, error) {
	path := filepath.Join(dir, "node")
	text, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(text)); err == nil && len(id) == 16 {
		return id, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("id of this node: %w", err)
	}
	var b [8]byte
	rand.Read(b[:])
	id := hex.EncodeToString(b[:])
	if err := os.WriteFile(path, []byte(id+"\n"), 0600); err != nil {
		return "", fmt.Errorf("id of this node: %w", err)
	}
	return id, nil
}

// catchUp waits a while until the cluster knows that this node was started, and this
// node has applied the cluster's log. Without the others it goes on with the state it
// had. A node that was removed does not go on, nor one that cannot read the log.
func (m *member) catchUp(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := m.group.Begun(within)
	if errors.Is(err, trust.ErrRemoved) {
		return err
	}
	if err := m.machine.Err(); err != nil {
		return fmt.Errorf("this node cannot follow the cluster: %w", err)
	}
	if err != nil {
		m.log.Warn("the cluster does not answer; serving what this node knows", "cause", err)
	} else if m.joined {
		m.awaitVotes(ctx)
	}
	if n, ok := m.machine.Node(m.group.Self()); ok {
		m.host = n.Host
	}
	return nil
}

// awaitVotes waits a while until the right nodes have votes, with this one in the cluster:
// it may then die, or any other, and the rest go on.
func (m *member) awaitVotes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := m.group.AwaitVotes(ctx); err != nil {
		m.log.Warn("the cluster has not agreed yet who votes, and may not outlive a failure before it has; see: rankfs node ls", "cause", err)
	}
}

// follow has those that keep something of other nodes know which there are, and which are up.
// One that is back is asked at once, however it failed before.
func (m *member) follow(ctx context.Context) {
	known := make(map[string]state.Node)
	for {
		changed := m.machine.ClusterChanged()
		now := make(map[string]state.Node)
		for _, n := range m.machine.Nodes() {
			now[n.ID] = n
		}
		is := func(id string) bool { return now[id].ID != "" }
		was := known
		known = now
		m.owners.Follow(ownersOf(m.machine.Nodes()))
		m.wire.Follow(upOf(m.machine.Nodes()))
		m.wire.Keep(func(id string) bool { return is(id) && !isBack(was[id], now[id]) })
		m.peers.Keep(is)
		m.server.Keep(is)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// isBack reports whether a node has another daemon than it had, or is up again.
func isBack(was, n state.Node) bool {
	return was.ID != "" && (n.Life != was.Life || n.Up && !was.Up)
}

func (m *member) close() error {
	return errors.Join(m.wire.Close(), m.group.Close(), m.port.Close())
}

// ownersOf has the facts about nodes that decide which of them owns a chunk.
func ownersOf(nodes []state.Node) (all []plan.Node) {
	for _, n := range nodes {
		all = append(all, plan.Node{ID: n.ID, Host: n.Host, Up: n.Up, Drained: n.Drained})
	}
	return all
}

// upOf has the nodes that are up.
func upOf(nodes []state.Node) (up []string) {
	for _, n := range nodes {
		if n.Up {
			up = append(up, n.ID)
		}
	}
	return up
}

// addr is where others reach this node.
func (m *member) addr() string { return reachable(m.port.Addr().String(), m.called) }

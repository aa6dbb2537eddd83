package datanode

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/hdfs/shortcircuit"
	"rankfs/meta"
)

// Config says how datanodes are reached.
type Config struct {
	User string       // as the namenode knows us; with Kerberos empty
	Host string       // this host's name: a replica on it is preferred
	Here []netip.Addr // this host's addresses, likewise
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	Log  *slog.Logger

	// Guard says how connections are guarded, for each that is made; nil where
	// blocks travel in the clear. Its error ends the stream.
	Guard func(ctx context.Context) (Guard, error)

	// Files passes the files of blocks whose replica is on this host; nil where
	// all blocks come over TCP.
	Files *shortcircuit.Client

	// Corrupt is called with a corrupt replica, once the bytes of another replica
	// matched their checksums; may be nil.
	Corrupt func(ctx context.Context, b namenode.Block, r namenode.Replica)

	// Timeout bounds the wait for a connection, and for each next 64 KiB. A
	// datanode whose disk seeks under load answers within two seconds.
	Timeout time.Duration
	// BackOff is how long a datanode that failed is asked last.
	BackOff time.Duration
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.BackOff == 0 {
		c.BackOff = 30 * time.Second
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Client reads blocks. Its methods may be called concurrently. The lock guards what is
// known of each datanode, and is not held while one is read.
type Client struct {
	config Config
	here   map[netip.Addr]bool // addresses of this host

	bytes, local, files, corrupt, failures atomic.Uint64

	mu struct {
		sync.Mutex
		nodes map[string]*node // by the datanode's id; as many as the cluster has
	}
}

// A node is the state of a datanode, as far as this client knows it.
type node struct {
	streams int       // under way
	failed  time.Time // last, or when it was tried again; zero if it has answered since
}

// Stats counts what datanodes were asked for.
type Stats struct {
	Bytes    uint64 // received, the protocol's own included
	Local    uint64 // of these, from this host
	Files    uint64 // of these, read by the blocks' files
	Corrupt  uint64 // replicas whose checksums did not match, or are lost
	Failures uint64 // replicas given up for that or any other reason
	Streams  int    // under way
}

// New returns a client. It does no I/O.
func New(c Config) *Client {
	k := &Client{config: c.withDefaults(), here: make(map[netip.Addr]bool)}
	k.mu.nodes = make(map[string]*node)
	for _, a := range c.Here {
		k.here[a.Unmap()] = true
	}
	return k
}

func (c *Client) guard(ctx context.Context) (Guard, error) {
	if c.config.Guard == nil {
		return Guard{}, nil
	}
	return c.config.Guard(ctx)
}

// Snapshot returns the counters. Each is a part of the one after it, and grows after
// that one.
func (c *Client) Snapshot() Stats {
	s := Stats{Files: c.files.Load(), Local: c.local.Load(), Bytes: c.bytes.Load(), Corrupt: c.corrupt.Load(), Failures: c.failures.Load()}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.mu.nodes {
		s.Streams += n.streams
	}
	return s
}

// isLocal reports whether a replica is on this host.
func (c *Client) isLocal(r namenode.Replica) bool {
	at, err := netip.ParseAddrPort(r.Addr)
	return err == nil && c.here[at.Addr().Unmap()] || meta.SameHost(r.Host, c.config.Host)
}

// pick chooses the replica to ask: one on this host, else the one on the datanode with
// the fewest streams of this client; among equals the namenode's first. A datanode
// that failed lately comes last; when it has rested one stream tries it, and the
// others follow if that succeeds. Replicas in tried are not chosen. The caller ends
// its use with drop.
func (c *Client) pick(replicas []namenode.Replica, tried map[string]bool) (r namenode.Replica, ok bool) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	best := score{}
	for _, candidate := range replicas {
		if tried[candidate.ID] {
			continue
		}
		s := c.score(candidate, now)
		if !ok || s.less(best) {
			r, best, ok = candidate, s, true
		}
	}
	if ok {
		n := c.node(r.ID)
		n.streams++
		if !n.failed.IsZero() {
			n.failed = now
		}
	}
	return r, ok
}

// A score orders replicas: the least is asked.
type score struct {
	failed  time.Time // zero if it is asked as others are
	remote  bool
	streams int
}

func (c *Client) score(r namenode.Replica, now time.Time) score {
	n := c.node(r.ID)
	s := score{remote: !c.isLocal(r), streams: n.streams}
	if now.Sub(n.failed) < c.config.BackOff {
		s.failed = n.failed
	}
	return s
}

func (s score) less(o score) bool {
	switch {
	case !s.failed.Equal(o.failed):
		return s.failed.Before(o.failed)
	case s.remote != o.remote:
		return o.remote
	}
	return s.remote && s.streams < o.streams
}

// node returns the state of a datanode, new if it has none. mu is held.
func (c *Client) node(id string) *node {
	n := c.mu.nodes[id]
	if n == nil {
		n = &node{}
		c.mu.nodes[id] = n
	}
	return n
}

// drop ends a stream's use of a datanode, and remembers how it went.
func (c *Client) drop(r namenode.Replica, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.node(r.ID)
	n.streams--
	switch {
	case err == nil:
		n.failed = time.Time{}
	case err != errMute && !errors.Is(err, context.Canceled):
		n.failed = time.Now()
	}
}

// errMute ends a use of a datanode that says nothing of it: neither that it fails
// nor that it is well.
var errMute = errors.New("it says nothing of its datanode")

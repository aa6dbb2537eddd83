package group

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta"
	"rankfs/meta/trust"
)

// Raft knows a server by an address. Ours has the node's id, which is authenticated,
// and where it listens: ID@HOST:PORT.
func raftAddress(id, addr string) raft.ServerAddress {
	return raft.ServerAddress(id + "@" + addr)
}

// A stream is the way that Raft's connections take: the node's port.
type stream struct {
	net.Listener
	self  raft.ServerAddress
	dial  func(ctx context.Context, addr, id string) (net.Conn, error)
	admit func(id string) bool // which nodes are listened to
}

// Accept implements net.Listener.
func (s stream) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &admittedConn{Conn: conn, admit: func() bool {
		id, ok := trust.PeerID(conn)
		return ok && s.admit(id)
	}}, nil
}

// Dial implements raft.StreamLayer.
func (s stream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	id, addr, ok := strings.Cut(string(address), "@")
	if !ok {
		return nil, fmt.Errorf("raft address %q %w", address, meta.ErrInvalid)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.dial(ctx, addr, id)
}

// Addr is the address by which other members know this one.
func (s stream) Addr() net.Addr { return streamAddr(s.self) }

type streamAddr string

func (streamAddr) Network() string  { return "rankfs" }
func (a streamAddr) String() string { return string(a) }

// An admittedConn is read once its node was admitted, which may take a while; else it
// is as if it had ended.
type admittedConn struct {
	net.Conn
	admit func() bool
	once  sync.Once
	deaf  bool
}

func (c *admittedConn) Read(b []byte) (int, error) {
	c.once.Do(func() { c.deaf = !c.admit() })
	if c.deaf {
		return 0, io.EOF
	}
	return c.Conn.Read(b)
}

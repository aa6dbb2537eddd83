package trust

import (
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// A conn is a connection that was greeted. The port knows it until it is closed.
//
// The lock guards the timer, and whether it is closed; the port is told that without it.
type conn struct {
	*tls.Conn
	raw     net.Conn
	peer    string       // the node at the other end; "" if it joins
	role    Role         // of peer
	key     string       // its fingerprint
	pending *pendingConn // of an accepted connection; nil for a dialled one
	forget  func(*conn)  // has the port know it no more

	mu struct {
		sync.Mutex
		timer  *time.Timer // ends one that joins
		closed bool
	}
}

// PeerID is the node at the other end of a connection of a port, as its
// certificate says. One that joins has none.
func PeerID(c net.Conn) (node string, ok bool) {
	own, ok := c.(*conn)
	if !ok || own.peer == "" {
		return "", false
	}
	return own.peer, true
}

// PeerRole is the role of that node, as its certificate says.
func PeerRole(c net.Conn) Role {
	if own, ok := c.(*conn); ok {
		return own.role
	}
	return ""
}

// Close says goodbye and closes.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.gone()
	return err
}

// cut closes at once: what is on its way is lost.
func (c *conn) cut() {
	if tcp, ok := c.raw.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.raw.Close()
	c.gone()
}

// limit cuts the connection after d.
func (c *conn) limit(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mu.closed {
		c.mu.timer = time.AfterFunc(d, c.cut)
	}
}

// gone tells the port, once.
func (c *conn) gone() {
	c.mu.Lock()
	first := !c.mu.closed
	c.mu.closed = true
	if c.mu.timer != nil {
		c.mu.timer.Stop()
	}
	c.mu.Unlock()
	if first {
		c.forget(c)
	}
}

package trust

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// pendingConns bound the connections that have shown no certificate: those in their
// handshake, and those that join. There are at most limit, and perHost of one
// address.
//
// If there is no place left, a new connection evicts one that is older than patience
// and has sent no hello, or one that is older than three times that. A handshake takes
// milliseconds, or a second on a host whose ranks leave it no core: so real peers get
// in while an attacker holds all places, and do not evict each other. The lock guards the
// list, and whether each pending connection has spoken; connections are closed without it.
type pendingConns struct {
	limit    int
	perHost  int
	patience time.Duration

	mu struct {
		sync.Mutex
		conns  []*pendingConn // the oldest first
		closed bool
	}
}

// A pendingConn is a connection that has shown no certificate yet.
type pendingConn struct {
	host  netip.Addr
	since time.Time
	conn  net.Conn // closed when it has to give way
	spoke bool     // has said hello; the lock of pendingConns guards it
}

// enter lets a connection in, or says why not.
func (d *pendingConns) enter(conn net.Conn, host netip.Addr, now time.Time) (*pendingConn, reason) {
	g := &pendingConn{host: host, since: now, conn: conn}
	d.mu.Lock()
	evicted, why := d.makeRoom(g)
	if d.mu.closed {
		why = refusedDoor
	}
	if why == accepted {
		d.mu.conns = append(d.mu.conns, g)
	}
	d.mu.Unlock()
	if evicted != nil {
		evicted.conn.Close()
	}
	return g, why
}

// makeRoom evicts a connection that is there for too long, if there is no place for a new one:
// one of the same host if that has its share, else any.
func (d *pendingConns) makeRoom(g *pendingConn) (*pendingConn, reason) {
	var same []*pendingConn
	for _, other := range d.mu.conns {
		if other.host == g.host {
			same = append(same, other)
		}
	}
	crowd, why := same, refusedHost
	if len(same) < d.perHost {
		crowd, why = d.mu.conns, refusedDoor
		if len(crowd) < d.limit {
			return nil, accepted
		}
	}
	idle := slices.IndexFunc(crowd, func(o *pendingConn) bool { return d.tired(o, g.since) })
	if idle < 0 {
		return nil, why
	}
	gone := crowd[idle]
	d.drop(gone)
	return gone, accepted
}

// tired reports whether a pending connection has had its time.
func (d *pendingConns) tired(g *pendingConn, now time.Time) bool {
	if g.spoke {
		return now.Sub(g.since) >= 3*d.patience
	}
	return now.Sub(g.since) >= d.patience
}

// heard is told when a pending connection has said hello.
func (d *pendingConns) heard(g *pendingConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g.spoke = true
}

// leave makes room for others; it may be called twice.
func (d *pendingConns) leave(g *pendingConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(g)
}

func (d *pendingConns) drop(g *pendingConn) {
	d.mu.conns = slices.DeleteFunc(d.mu.conns, func(o *pendingConn) bool { return o == g })
}

// shut closes all connections and refuses new ones.
func (d *pendingConns) shut() {
	d.mu.Lock()
	d.mu.closed = true
	all := slices.Clone(d.mu.conns)
	d.mu.Unlock()
	for _, g := range all {
		g.conn.Close()
	}
}

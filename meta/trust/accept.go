package trust

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// acceptPause is for when the process has no descriptor left.
const acceptPause = 50 * time.Millisecond

func (p *Port) acceptAll() {
	for {
		raw, err := p.tcp.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			p.ledger.refuse(refusedBusy, netip.AddrPort{}, err, time.Now())
			select {
			case <-p.ctx.Done():
				return
			case <-time.After(acceptPause):
				continue
			}
		}
		p.meet(raw)
	}
}

// meet lets a connection in, as a pending one. A connection that is refused is reset rather
// than closed, so that this end keeps no state of it.
func (p *Port) meet(raw *net.TCPConn) {
	from := raw.RemoteAddr().(*net.TCPAddr).AddrPort()
	pending, why := p.pending.enter(raw, from.Addr().Unmap(), time.Now())
	if why != accepted {
		raw.SetLinger(0)
		raw.Close()
		p.ledger.refuse(why, from, nil, time.Now())
		return
	}
	p.wg.Go(func() {
		if why, err := p.receive(raw, pending); why != accepted {
			p.pending.leave(pending)
			raw.Close()
			p.ledger.refuse(why, from, err, time.Now())
		}
	})
}

// receive has the peer of a connection show its certificate and gives the connection
// to its listener.
func (p *Port) receive(raw *net.TCPConn, g *pendingConn) (reason, error) {
	raw.SetDeadline(time.Now().Add(p.config.HandshakeTime))
	t := p.server(raw, g)
	if err := t.Handshake(); err != nil {
		return whyFailed(err), err
	}
	c := &conn{Conn: t, raw: raw, pending: g, forget: p.forget}
	protocol := Protocol(t.ConnectionState().NegotiatedProtocol)
	if protocol != Join {
		name, err := nameIn(t.ConnectionState().PeerCertificates[0])
		if err != nil {
			return refusedCertificate, err
		}
		c.peer, c.role, c.key = name.Node, name.Role, keyIn(t.ConnectionState().PeerCertificates[0])
	}
	l, why := p.admit(c, protocol)
	_, err := t.Write([]byte{greetingFor(why)})
	if why != accepted {
		c.Close()
		return why, fmt.Errorf("node %q asks for %s", c.peer, protocol)
	}
	if err != nil {
		p.release(l)
		c.cut()
		return whyFailed(err), err
	}
	p.endHandshake(c)
	p.deliver(l, c)
	return accepted, nil
}

// admit registers a connection whose certificate is good, and finds its
// listener a place for it. First registered, then asked whether it is allowed:
// see Port.
func (p *Port) admit(c *conn, protocol Protocol) (*arrivals, reason) {
	if why := p.register(c); why != accepted {
		return nil, why
	}
	if protocol != Join && !p.config.Allowed(c.peer, c.key) {
		return nil, refusedRevoked
	}
	return p.reserve(protocol)
}

func greetingFor(why reason) byte {
	switch why {
	case accepted:
		return greetWelcome
	case refusedRevoked:
		return greetRevoked
	case refusedUnserved:
		return greetNone
	}
	return greetBusy
}

// endHandshake lifts the deadline of a handshake. The connection of a node that joins stays pending, for
// JoinTime.
func (p *Port) endHandshake(c *conn) {
	c.raw.SetDeadline(time.Time{})
	if c.peer == "" {
		c.limit(p.config.JoinTime)
		return
	}
	p.pending.leave(c.pending)
}

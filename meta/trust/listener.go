package trust

import (
	"fmt"
	"net"
	"slices"
)

// A listener hands out the connections of one protocol.
type listener struct {
	*arrivals
	port     *Port
	protocol Protocol
}

// Listener returns what accepts the connections of a protocol, until it is
// closed. There can be one at a time.
func (p *Port) Listener(protocol Protocol) net.Listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(protocols, string(protocol)) || p.mu.listeners[protocol] != nil {
		panic(fmt.Sprintf("trust: second listener for %q, or no such protocol", protocol))
	}
	l := &listener{&arrivals{queue: make(chan *conn, p.config.Waiting), done: make(chan struct{})}, p, protocol}
	if p.mu.closed {
		l.shut()
		return l
	}
	p.mu.listeners[protocol] = l.arrivals
	return l
}

// reserve finds a place for a connection with the listener of a protocol.
func (p *Port) reserve(protocol Protocol) (*arrivals, reason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.mu.listeners[protocol]
	switch {
	case l == nil || l.shutdown:
		return nil, refusedUnserved
	case l.waiting >= cap(l.queue):
		return nil, refusedWaiting
	}
	l.waiting++
	return l, accepted
}

// release gives a place back.
func (p *Port) release(l *arrivals) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.waiting--
}

// deliver puts a connection in its place. If the listener was closed meanwhile
// the connection is cut.
func (p *Port) deliver(l *arrivals, c *conn) {
	p.mu.Lock()
	gone := l.shutdown
	if !gone {
		l.queue <- c
	}
	p.mu.Unlock()
	if gone {
		p.release(l)
		c.cut()
	}
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, l.closed()
	default:
	}
	select {
	case c := <-l.queue:
		l.port.release(l.arrivals)
		return c, nil
	case <-l.done:
		return nil, l.closed()
	}
}

func (l *listener) closed() error {
	return &net.OpError{Op: "accept", Net: string(l.protocol), Addr: l.Addr(), Err: net.ErrClosed}
}

// Close refuses new connections, and cuts those that wait to be accepted.
func (l *listener) Close() error {
	l.port.mu.Lock()
	if !l.shutdown {
		l.shut()
		delete(l.port.mu.listeners, l.protocol)
	}
	l.port.mu.Unlock()
	for {
		select {
		case c := <-l.queue:
			l.port.release(l.arrivals)
			c.cut()
		default:
			return nil
		}
	}
}

// Addr is the port's.
func (l *listener) Addr() net.Addr { return l.port.tcp.Addr() }

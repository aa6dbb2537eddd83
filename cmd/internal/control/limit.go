package control

import (
	"io"
	"net"
	"sync"
	"time"
)

// A limited listener has at most cap(slots) connections of admins open at a time;
// more of them wait in the kernel's queue. Of other users it has at most cap(others)
// and turns away the rest: if these waited, admins would wait behind them.
type limited struct {
	net.Listener
	slots, others chan struct{}
	admin         func(net.Conn) bool
	done          chan struct{}
	close         func() error
}

func newLimited(l net.Listener, admins, others int, admin func(net.Conn) bool) *limited {
	done := make(chan struct{})
	return &limited{
		Listener: l,
		slots:    make(chan struct{}, admins),
		others:   make(chan struct{}, others),
		admin:    admin,
		done:     done,
		close:    sync.OnceValue(func() error { close(done); return l.Close() }),
	}
}

func (l *limited) Close() error { return l.close() }

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		slots := l.slots
		if !l.admin(c) {
			slots = l.others
			if len(slots) == cap(slots) { // only this goroutine fills one
				turnAway(c)
				continue
			}
		}
		select {
		case slots <- struct{}{}:
			return &limitedConn{Conn: c, release: sync.OnceFunc(func() { <-slots })}, nil
		case <-l.done:
			c.Close()
			return nil, net.ErrClosed
		}
	}
}

// turnAway says why. The answer fits the empty buffer of a new connection.
func turnAway(c net.Conn) {
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	c.Close()
}

type limitedConn struct {
	net.Conn
	release func()
}

func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

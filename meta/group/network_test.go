package group

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"rankfs/meta/trust"
)

// A network is what lies between the nodes of a test. What is sent on a way
// that is cut waits, as in the buffers of a host whose link is down: no end of the connection
// is told.
type network struct {
	mu struct {
		sync.Mutex
		cut     map[way]bool
		delay   time.Duration // of each read of what was sent
		changed chan struct{}
	}
}

// A way is a direction between two nodes.
type way struct{ from, to string }

func newNetwork() *network {
	w := new(network)
	w.mu.cut, w.mu.changed = make(map[way]bool), make(chan struct{})
	return w
}

func (w *network) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	close(w.mu.changed)
	w.mu.changed = make(chan struct{})
}

// cut loses what is sent one way.
func (w *network) cut(from, to string) { w.change(func() { w.mu.cut[way{from, to}] = true }) }

// isolate cuts a node off from all of others, both ways.
func (w *network) isolate(id string, others ...*node) {
	w.change(func() {
		for _, n := range others {
			if n.id != id {
				w.mu.cut[way{id, n.id}], w.mu.cut[way{n.id, id}] = true, true
			}
		}
	})
}

// heal lets everything through again.
func (w *network) heal() { w.change(func() { clear(w.mu.cut); w.mu.delay = 0 }) }

// slow has everything take so much longer.
func (w *network) slow(d time.Duration) { w.change(func() { w.mu.delay = d }) }

func (w *network) state(d way) (cut bool, delay time.Duration, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.cut[d], w.mu.delay, w.mu.changed
}

// pass waits until a way is open.
func (w *network) pass(d way, ended <-chan struct{}, deadline time.Time) error {
	var late <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		late = timer.C
	}
	for slept := false; ; {
		cut, delay, changed := w.state(d)
		if !cut && (delay == 0 || slept) {
			return nil
		}
		var passed <-chan time.Time
		if !cut {
			passed = time.After(delay)
		}
		select {
		case <-passed:
			slept = true
		case <-changed:
		case <-late:
			return os.ErrDeadlineExceeded
		case <-ended:
			return net.ErrClosed
		}
	}
}

// A gate is the port of a node on a network. It is enough to hold up those who
// dial: a connection's both ways pass them.
type gate struct {
	*trust.Port
	self string
	net  *network
}

func (g gate) Dial(ctx context.Context, addr, id string, p trust.Protocol) (net.Conn, error) {
	for _, d := range []way{{g.self, id}, {id, g.self}} {
		if err := g.net.pass(d, ctx.Done(), time.Time{}); err != nil {
			return nil, ctx.Err()
		}
	}
	c, err := g.Port.Dial(ctx, addr, id, p)
	if err != nil {
		return nil, err
	}
	return &wire{Conn: c, gate: g, peer: id, closed: make(chan struct{})}, nil
}

// A wire is a connection over a network.
type wire struct {
	net.Conn
	gate   gate
	peer   string
	once   sync.Once
	closed chan struct{}
	mu     struct {
		sync.Mutex
		read, write time.Time
	}
}

func (c *wire) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 && err != nil && err != io.EOF {
		return n, err
	}
	c.mu.Lock()
	deadline := c.mu.read
	c.mu.Unlock()
	if blocked := c.gate.net.pass(way{c.peer, c.gate.self}, c.closed, deadline); blocked != nil {
		return 0, blocked
	}
	return n, err
}

func (c *wire) Write(b []byte) (int, error) {
	c.mu.Lock()
	deadline := c.mu.write
	c.mu.Unlock()
	if err := c.gate.net.pass(way{c.gate.self, c.peer}, c.closed, deadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *wire) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *wire) SetDeadline(t time.Time) error {
	c.mu.Lock()
	c.mu.read, c.mu.write = t, t
	c.mu.Unlock()
	return c.Conn.SetDeadline(t)
}

func (c *wire) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	c.mu.read = t
	c.mu.Unlock()
	return c.Conn.SetReadDeadline(t)
}

func (c *wire) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	c.mu.write = t
	c.mu.Unlock()
	return c.Conn.SetWriteDeadline(t)
}

package trust_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/trust"
	"rankfs/test/eventually"
)

// A node is a port with its own clock and its own opinion of who is allowed.
type node struct {
	*trust.Port
	id       string
	identity *trust.Identity
	clock    *clock
	banned   sync.Map
	keys     sync.Map // by id, of those that it knows
}

func (n *node) addr() string { return n.Port.Addr().String() }

func (c *cluster) node(t testing.TB, number int, changes ...func(*trust.Config)) *node {
	t.Helper()
	n := &node{id: id(number), clock: newClock()}
	n.clock.at.Store(c.clock.at.Load())
	n.identity = c.identity(t, n.id)
	config := trust.Config{Authority: c.ca, Identity: n.identity, Now: n.clock.now, Allowed: func(id, key string) bool {
		_, banned := n.banned.Load(id)
		known, ok := n.keys.Load(id)
		return !banned && (!ok || known == key)
	}}
	for _, change := range changes {
		change(&config)
	}
	port, err := trust.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	n.Port = port
	t.Cleanup(func() {
		port.Close()
		if s := port.Stats(); s.In != 0 || s.Out != 0 || s.Pending != 0 || s.Waiting != 0 {
			t.Errorf("after Close: %+v", s)
		}
	})
	return n
}

// echo answers on a protocol with what it is sent, and says who it was.
func (n *node) echo(t testing.TB, protocol trust.Protocol) {
	l := n.Listener(protocol)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		n.Close()
		wg.Wait()
	})
}

// works fails the test if a connection does not echo.
func works(t testing.TB, c net.Conn) {
	t.Helper()
	if err := ping(c); err != nil {
		t.Fatal(err)
	}
}

func ping(c net.Conn) error {
	if _, err := c.Write([]byte("hello")); err != nil {
		return err
	}
	got := make([]byte, 5)
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if string(got) != "hello" {
		return fmt.Errorf("got %q", got)
	}
	return nil
}

// dial connects, or fails the test.
func (n *node) dial(t testing.TB, to *node, protocol trust.Protocol) net.Conn {
	t.Helper()
	c, err := n.Dial(t.Context(), to.addr(), to.id, protocol)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// reach dials until it is let in, where too many others dial too.
func (n *node) reach(t testing.TB, to *node, protocol trust.Protocol) (c net.Conn) {
	t.Helper()
	eventually.True(t, "being let in", func() bool {
		var err error
		c, err = n.Dial(t.Context(), to.addr(), to.id, protocol)
		if err != nil && !errors.Is(err, meta.ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil
	})
	t.Cleanup(func() { c.Close() })
	return c
}

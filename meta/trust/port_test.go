package trust_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/trust"
	"rankfs/test/eventually"
)

func TestRevoke(t *testing.T) {
	c := newCluster(t)
	a, b, other := c.node(t, 1), c.node(t, 2), c.node(t, 3)
	b.echo(t, trust.Call)
	a.echo(t, trust.Data)
	dialled, accepted := a.dial(t, b, trust.Call), b.dial(t, a, trust.Data)
	unconcerned := other.dial(t, b, trust.Call)
	works(t, dialled)
	works(t, accepted)

	b.banned.Store(a.id, true)
	if n := b.Revoke(a.id); n != 2 {
		t.Errorf("%d connections were cut, want 2", n)
	}
	for _, conn := range []net.Conn{dialled, accepted} {
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("read from a connection that was cut")
		}
	}
	works(t, unconcerned)
	_, err := a.Dial(t.Context(), b.addr(), b.id, trust.Call)
	wants(t, err, meta.ErrDenied)
	_, err = b.Dial(t.Context(), a.addr(), a.id, trust.Data)
	wants(t, err, meta.ErrDenied)
	eventually.True(t, "the refused to be gone", func() bool { return b.Stats().In == 1 })
	if n := b.Revoke(a.id) + b.Revoke(""); n != 0 {
		t.Errorf("%d connections more", n)
	}
}

// However handshakes and Revoke meet, no connection of the node is left.
func TestRevokeDuringHandshakes(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2, func(c *trust.Config) { c.PendingPerHost = 64 })
	b.echo(t, trust.Call)
	for range 20 {
		b.banned.Clear()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for { // until it is told that it is out
					if _, err := a.Dial(t.Context(), b.addr(), b.id, trust.Call); errors.Is(err, meta.ErrDenied) {
						return
					}
					if a.Stats().Out > 500 {
						a.Revoke(b.id)
					}
				}
			})
		}
		eventually.True(t, "some connections", func() bool { return b.Stats().In > 0 })
		b.banned.Store(a.id, true)
		b.Revoke(a.id)
		wg.Wait()
		eventually.True(t, "none to be left", func() bool { return b.Stats().In == 0 })
		a.Revoke(b.id)
	}
}

func TestRenewUnderConnections(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2)
	b.echo(t, trust.Call)
	old := a.dial(t, b, trust.Call)
	for day := range 30 {
		for _, n := range []*node{a, b} {
			n.clock.move(24 * time.Hour)
		}
		c.clock.move(24 * time.Hour)
		for _, n := range []*node{a, b} {
			if n.identity.Due(n.clock.now()) {
				c.renew(t, n.identity)
			}
		}
		works(t, old)
		fresh, err := a.Dial(t.Context(), b.addr(), b.id, trust.Call)
		if err != nil {
			t.Fatalf("day %d: %v", day, err)
		}
		works(t, fresh)
		fresh.Close()
	}
}

// Clocks jump, and jump back. What is open stays open. Before the cluster was
// made, and after a certificate has expired, no other connection is made.
func TestClocksJump(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2)
	b.echo(t, trust.Call)
	old := a.dial(t, b, trust.Call)
	for _, by := range []time.Duration{trust.Life * 520, -trust.Life * 520, trust.Life + time.Hour, -48 * time.Hour} {
		for _, who := range []*node{a, b} {
			who.clock.move(by)
			_, err := a.Dial(t.Context(), b.addr(), "", trust.Call)
			wants(t, err, meta.ErrDenied)
			works(t, old)
			who.clock.move(-by)
		}
		works(t, a.dial(t, b, trust.Call))
	}
}

// Who signs has a clock that is ahead or behind: a node whose clock is right is
// taken by others with that certificate while it lasts, and gets another.
func TestSignedByAWrongClock(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2)
	b.echo(t, trust.Call)
	for _, clock := range []*clock{c.clock, a.clock, b.clock} {
		clock.move(6 * 24 * time.Hour)
	}
	for _, by := range []time.Duration{time.Hour, 24 * time.Hour, 3 * 365 * 24 * time.Hour, -time.Hour, -5 * 24 * time.Hour} {
		c.clock.move(by)
		text := c.sign(t, a.identity, trust.RoleNode)
		c.clock.move(-by)
		if err := a.identity.Renew(text, c.ca, a.clock.now()); err != nil {
			t.Errorf("%v ahead: %v", by, err)
		}
		works(t, a.dial(t, b, trust.Call))
		if due, want := a.identity.Due(a.clock.now()), by > 0 || by < -trust.Life*2/3; due != want {
			t.Errorf("%v ahead: due is %v", by, due)
		}
	}
}

func TestSecondListener(t *testing.T) {
	b := newCluster(t).node(t, 2)
	b.Listener(trust.Call)
	for _, protocol := range []trust.Protocol{trust.Call, "rankfs-call/2"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s can be listened to", protocol)
				}
			}()
			b.Listener(protocol)
		}()
	}
	b.Close()
	_, err := b.Listener(trust.Raft).Accept()
	wants(t, err, net.ErrClosed)
}

// A port without descriptors is there again when there are some.
func TestOutOfDescriptors(t *testing.T) {
	c := newCluster(t)
	b := c.node(t, 2)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	connected := unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: b.Addr().(*net.TCPAddr).Port})
	eventually.True(t, "it to notice", func() bool { return b.Stats().Refused["connections"] > 0 })
	if err := errors.Join(connected, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a pending connection", func() bool { return b.Stats().Pending == 1 })
}

func TestListenerClosed(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2)
	l := b.Listener(trust.Call)
	waiting := a.dial(t, b, trust.Call)
	eventually.True(t, "a connection to wait", func() bool { return b.Stats().Waiting == 1 })
	l.Close()
	if _, err := waiting.Read(make([]byte, 1)); err == nil {
		t.Error("a connection that was not accepted is open")
	}
	_, err := l.Accept()
	wants(t, err, net.ErrClosed)
	_, err = a.Dial(t.Context(), b.addr(), "", trust.Call)
	wants(t, err, meta.ErrUnavailable)
	b.echo(t, trust.Call) // may be listened to again
	works(t, a.dial(t, b, trust.Call))
}

func TestCloseEndsEverything(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2, func(c *trust.Config) { c.HandshakeTime = time.Hour })
	l := b.Listener(trust.Call)
	conn := a.dial(t, b, trust.Call)
	silent, err := net.Dial("tcp", b.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	eventually.True(t, "a pending connection", func() bool { return b.Stats().Pending == 1 })
	hung := serve(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	dialled := make(chan error)
	go func() {
		_, err := b.Dial(context.Background(), hung, "", trust.Call)
		dialled <- err
	}()
	eventually.True(t, "dialling", func() bool { return b.Stats().Out == 1 })
	accepts := make(chan error)
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := l.Accept()
		accepts <- err
	}()
	b.Close()
	wants(t, <-accepts, net.ErrClosed)
	wants(t, <-dialled, context.Canceled)
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a connection is open")
	}
	if s := b.Stats(); s.In != 0 || s.Out != 0 || s.Pending != 0 {
		t.Errorf("%+v", s)
	}
	_, err = b.Dial(t.Context(), a.addr(), "", trust.Call)
	wants(t, err, net.ErrClosed)
	b.Close()
}

func TestOpenInvalid(t *testing.T) {
	c := newCluster(t)
	_, err := trust.Open(t.Context(), trust.Config{Authority: c.ca, Identity: c.identity(t, id(1))})
	wants(t, err, meta.ErrInvalid) // which nodes are allowed must be said
}

// Unless told otherwise no other host can reach a port.
func TestDefaultAddress(t *testing.T) {
	n := newCluster(t).node(t, 1)
	if at, err := netip.ParseAddrPort(n.addr()); err != nil || !at.Addr().IsLoopback() {
		t.Errorf("%s is reached from outside", n.addr())
	}
}

// A peer that has died is noticed, on both sides.
func TestSocketOptions(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2)
	l := b.Listener(trust.Call)
	dialled := a.dial(t, b, trust.Call)
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	for name, conn := range map[string]net.Conn{"dialled": dialled, "accepted": accepted} {
		raw, err := conn.(interface{ NetConn() net.Conn }).NetConn().(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		raw.Control(func(fd uintptr) {
			for option, want := range map[int]int{unix.TCP_USER_TIMEOUT: 60_000, unix.TCP_KEEPIDLE: 10, unix.TCP_KEEPINTVL: 5, unix.TCP_KEEPCNT: 3} {
				if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option); got != want || err != nil {
					t.Errorf("%s: option %d is %d, want %d (%v)", name, option, got, want, err)
				}
			}
			if on, _ := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE); on == 0 {
				t.Errorf("%s: no keepalive", name)
			}
		})
	}
}

// Renewing while others dial.
func TestRenewConcurrently(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2)
	b.echo(t, trust.Call)
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				conn, err := a.Dial(t.Context(), b.addr(), b.id, trust.Call)
				if err == nil {
					err = errors.Join(ping(conn), conn.Close())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 50 {
		c.renew(t, a.identity)
		c.renew(t, b.identity)
	}
	close(done)
	wg.Wait()
}

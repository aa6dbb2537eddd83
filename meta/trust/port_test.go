package trust_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/trust"
)

func TestDial(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2)
	for _, protocol := range []trust.Protocol{trust.Raft, trust.Call, trust.Data} {
		l := b.Listener(protocol)
		for _, want := range []string{b.id, ""} {
			conn, err := a.Dial(t.Context(), b.addr(), want, protocol)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			other, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			if peer, ok := trust.PeerID(conn); peer != b.id || !ok {
				t.Errorf("dialled %q", peer)
			}
			if peer, ok := trust.PeerID(other); peer != a.id || !ok {
				t.Errorf("accepted %q", peer)
			}
			go io.Copy(other, other)
			works(t, conn)
		}
	}
	if s := b.Stats(); s.In != 6 || s.Accepted != 6 || s.Guests != 0 || len(s.Refused) != 0 {
		t.Errorf("accepting side: %+v", s)
	}
	if s := a.Stats(); s.Out != 6 || s.Dialled != 6 {
		t.Errorf("dialling side: %+v", s)
	}
}

func TestJoin(t *testing.T) {
	c := newCluster(t)
	voter := c.node(t, 1)
	l := voter.Listener(trust.Join)
	token, err := trust.ParseToken(trust.NewToken(c.ca.Fingerprint()).Reveal())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	own, err := trust.OpenIdentity(dir, id(2), "host-2")
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() { answered <- c.let(l, token.Hash()) }()
	conn, ca, err := trust.DialJoin(t.Context(), voter.addr(), token.Pin(), c.clock.now())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request, err := own.Request()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(token.Reveal() + string(request))); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*tls.Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	cert, err := io.ReadAll(conn)
	if err := errors.Join(err, <-answered); err != nil {
		t.Fatal(err)
	}
	authority, err := trust.Adopt(dir, ca, token.Pin())
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Renew(cert, authority, c.clock.now()); err != nil {
		t.Fatal(err)
	}
	if authority.CanSign() || authority.Cluster() != c.ca.Cluster() {
		t.Errorf("adopted cluster %s, may sign: %v", authority.Cluster(), authority.CanSign())
	}

	voter.echo(t, trust.Call)
	joined := c.node(t, 2, func(c *trust.Config) { c.Authority, c.Identity = authority, own })
	works(t, joined.dial(t, voter, trust.Call))
}

// let answers one node that joins.
func (c *cluster) let(l net.Listener, hash [32]byte) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, known := trust.PeerID(conn); known {
		return errors.New("who joins has an id already")
	}
	text, err := io.ReadAll(io.LimitReader(conn, 4096))
	if err != nil {
		return err
	}
	size := len(trust.NewToken(c.ca.Fingerprint()).Reveal())
	token, err := trust.ParseToken(string(text[:size]))
	if err != nil {
		return err
	}
	if !token.Is(hash) {
		return errors.New("another token")
	}
	request, err := trust.ParseRequest(text[size:])
	if err != nil {
		return err
	}
	cert, err := c.ca.Sign(request, trust.RoleNode, c.clock.now(), 0)
	if err != nil {
		return err
	}
	_, err = conn.Write(cert)
	return err
}

// Whoever dials learns the truth, and what kind of truth.
func TestDialRefused(t *testing.T) {
	c, foreign := newCluster(t), newCluster(t)
	week := 8 * 24 * time.Hour
	rows := []struct {
		name  string
		setUp func(a, b *node)
		to    string // empty: b
		by    *cluster
		is    error
		says  string
		why   string // the reason that b counts
	}{
		{name: "another node", to: id(7), is: meta.ErrDenied, says: "node 0000000000000002 answers, not 0000000000000007"},
		{name: "revoked", setUp: func(a, b *node) { b.banned.Store(a.id, 1) }, is: meta.ErrDenied, says: "was removed", why: "revoked"},
		{name: "a revoked node", setUp: func(a, b *node) { a.banned.Store(b.id, 1) }, is: meta.ErrDenied, says: "not of the cluster any more"},
		{name: "of another cluster", by: foreign, is: meta.ErrDenied, says: "is not of cluster " + foreign.ca.Cluster()},
		{name: "own certificate expired", setUp: func(a, b *node) { a.clock.move(week); b.clock.move(week) },
			is: meta.ErrDenied, says: "this node: node 0000000000000001: certificate expired at 2031-05-13 07:08:09 UTC, and the clock here says 2031-05-14"},
		{name: "own clock behind", setUp: func(a, b *node) { a.clock.move(-time.Hour) }, is: meta.ErrDenied, says: "valid from 2031-05-06 06:58:09 UTC, and the clock here says 2031-05-06 06:08:09"},
		{name: "clock of the other ahead", setUp: func(a, b *node) { b.clock.move(week) }, is: meta.ErrDenied, says: "bad certificate", why: "certificate"},
		{name: "clock of the other behind", setUp: func(a, b *node) { b.clock.move(-week) }, is: meta.ErrDenied, says: "bad certificate", why: "certificate"},
		{name: "ten years later", setUp: func(a, b *node) { a.clock.move(520 * week); b.clock.move(520 * week) }, is: meta.ErrDenied, says: "set the clocks"},
		{name: "nobody listens", setUp: func(a, b *node) { b.Listener(trust.Call).Close() }, is: meta.ErrUnavailable, says: "nobody listens", why: "nobody"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			b := c.node(t, 2)
			dialler := c
			if row.by != nil {
				dialler = row.by
			}
			a := dialler.node(t, 1)
			if row.setUp == nil || row.why != "nobody" {
				b.echo(t, trust.Call)
			}
			if row.setUp != nil {
				row.setUp(a, b)
			}
			to := row.to
			if to == "" {
				to = b.id
			}
			conn, err := a.Dial(t.Context(), b.addr(), to, trust.Call)
			if err == nil {
				conn.Close()
			}
			if !errors.Is(err, row.is) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("error is %v, want %v and %q", err, row.is, row.says)
			}
			if row.why != "" {
				await(t, "the count of "+row.why, func() bool { return b.Stats().Refused[row.why] == 1 })
			}
			await(t, "no connections", func() bool { return a.Stats().Out == 0 && b.Stats().In == 0 && b.Stats().Guests == 0 })
		})
	}
}

// A certificate that only the server finds expired: the client's is of an hour.
func TestDialServerExpired(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2)
	b.echo(t, trust.Call)
	c.clock.move(8 * 24 * time.Hour)
	a.clock.move(8 * 24 * time.Hour)
	c.renew(t, a.identity)
	_, err := a.Dial(t.Context(), b.addr(), "", trust.Call)
	wants(t, err, meta.ErrDenied)
	if err != nil && !strings.Contains(err.Error(), "node 0000000000000002: certificate expired") {
		t.Error(err)
	}
}

// Servers that are no ports.
func TestDialStrangers(t *testing.T) {
	rows := []struct {
		name   string
		answer func(net.Conn)
		is     error
		says   string
	}{
		{"closes", func(c net.Conn) {}, meta.ErrUnavailable, "closed without an answer"},
		{"HTTP", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n"); io.Copy(io.Discard, c) }, meta.ErrUnavailable, "does not speak TLS"},
		{"silent", func(c net.Conn) { io.Copy(io.Discard, c) }, context.DeadlineExceeded, "no answer"},
		{"an alert", func(c net.Conn) { c.Write([]byte{21, 3, 3, 0, 2, 2, 80}); io.Copy(io.Discard, c) }, meta.ErrDenied, "internal error"},
	}
	c := newCluster(t)
	a := c.node(t, 1)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			addr := serve(t, row.answer)
			limit := time.Minute
			if row.name == "silent" {
				limit = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := a.Dial(ctx, addr, "", trust.Call)
			if !errors.Is(err, row.is) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("error is %v, want %v and %q", err, row.is, row.says)
			}
			if s := a.Stats(); s.Out != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
	t.Run("nobody", func(t *testing.T) {
		_, err := a.Dial(t.Context(), "127.0.0.1:1", "", trust.Call)
		wants(t, err, meta.ErrUnavailable)
	})
	t.Run("no such protocol", func(t *testing.T) {
		for _, p := range []trust.Protocol{trust.Join, "", "h2"} {
			_, err := a.Dial(t.Context(), a.addr(), "", p)
			wants(t, err, meta.ErrInvalid)
		}
	})
}

// serve answers each connection and closes it.
func serve(t *testing.T, answer func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				answer(c)
				c.Close()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// A server that has a certificate of the cluster but never says a word more.
func TestDialWithoutGreeting(t *testing.T) {
	c := newCluster(t)
	a := c.node(t, 1)
	config := raw(t, c, trust.RoleNode, nil)
	config.NextProtos, config.ClientAuth = []string{string(trust.Call)}, tls.RequireAnyClientCert
	addr := serve(t, func(c net.Conn) { io.Copy(io.Discard, tls.Server(c, config)) })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := a.Dial(ctx, addr, "", trust.Call)
	wants(t, err, context.DeadlineExceeded)
	wants(t, err, meta.ErrUnavailable)
}

// A server of the cluster, as far as its certificate says, with an old TLS.
func TestDialOldTLS(t *testing.T) {
	c := newCluster(t)
	a := c.node(t, 1)
	config := raw(t, c, trust.RoleNode, nil)
	config.NextProtos, config.MaxVersion = []string{string(trust.Call)}, tls.VersionTLS12
	addr := serve(t, func(c net.Conn) {
		s := tls.Server(c, config)
		s.Write([]byte{'w'})
		io.Copy(io.Discard, s)
	})
	_, err := a.Dial(t.Context(), addr, "", trust.Call)
	wants(t, err, meta.ErrDenied)
	_, _, err = trust.DialJoin(t.Context(), addr, c.ca.Fingerprint(), c.clock.now())
	wants(t, err, meta.ErrDenied)
}

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
	await(t, "the refused to be gone", func() bool { return b.Stats().In == 1 })
	if n := b.Revoke(a.id) + b.Revoke(""); n != 0 {
		t.Errorf("%d connections more", n)
	}
}

// However handshakes and Revoke meet, no connection of the node is left.
func TestRevokeDuringHandshakes(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2, func(c *trust.Config) { c.GuestsPerHost = 64 })
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
		before := b.Stats().Accepted
		await(t, "some connections", func() bool { return b.Stats().Accepted > before })
		b.banned.Store(a.id, true)
		b.Revoke(a.id)
		wg.Wait()
		await(t, "none to be left", func() bool { return b.Stats().In == 0 })
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

// Clocks jump, and jump back. What is open stays open.
func TestClocksJump(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2)
	b.echo(t, trust.Call)
	old := a.dial(t, b, trust.Call)
	for _, by := range []time.Duration{trust.Life * 520, -trust.Life * 520, trust.Life + time.Hour, -time.Hour} {
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

// More dial at once, from one host, than there are places for guests.
func TestStorm(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2)
	b.echo(t, trust.Data)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			conn, err := a.Dial(t.Context(), b.addr(), b.id, trust.Data)
			if err == nil {
				err = errors.Join(ping(conn), conn.Close())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
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
	await(t, "it to notice", func() bool { return b.Stats().Refused["connections"] > 0 })
	if err := errors.Join(connected, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)); err != nil {
		t.Fatal(err)
	}
	await(t, "a guest", func() bool { return b.Stats().Guests == 1 })
}

func TestListenerClosed(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2)
	l := b.Listener(trust.Call)
	waiting := a.dial(t, b, trust.Call)
	await(t, "a connection to wait", func() bool { return b.Stats().Waiting == 1 })
	l.Close()
	if _, err := waiting.Read(make([]byte, 1)); err == nil {
		t.Error("a connection that nobody took is open")
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
	await(t, "a guest", func() bool { return b.Stats().Guests == 1 })
	hung := serve(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	dialled := make(chan error)
	go func() {
		_, err := b.Dial(context.Background(), hung, "", trust.Call)
		dialled <- err
	}()
	await(t, "dialling", func() bool { return b.Stats().Out == 1 })
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
	if s := b.Stats(); s.In != 0 || s.Out != 0 || s.Guests != 0 {
		t.Errorf("%+v", s)
	}
	_, err = b.Dial(t.Context(), a.addr(), "", trust.Call)
	wants(t, err, net.ErrClosed)
	b.Close()
}

func TestOpenInvalid(t *testing.T) {
	c := newCluster(t)
	_, err := trust.Open(t.Context(), trust.Config{Authority: c.ca, Identity: c.identity(t, id(1))})
	wants(t, err, meta.ErrInvalid) // who is allowed must be said
}

// Unless told otherwise nobody else can reach a port.
func TestDefaultAddress(t *testing.T) {
	n := newCluster(t).node(t, 1)
	if safe, err := trust.Loopback(t.Context(), n.addr()); !safe || err != nil {
		t.Errorf("%s is reached from outside", n.addr())
	}
}

func TestLoopback(t *testing.T) {
	rows := []struct {
		address string
		safe    bool
		bad     bool
	}{
		{"127.0.0.1:0", true, false}, {"127.8.9.10:7000", true, false}, {"[::1]:7000", true, false},
		{"[::ffff:127.0.0.1]:7000", true, false}, {"localhost:7000", true, false},
		{":7000", false, false}, {"0.0.0.0:7000", false, false}, {"[::]:7000", false, false},
		{"10.0.0.1:7000", false, false}, {"[fe80::1%lo]:7000", false, false}, {"[::ffff:10.0.0.1]:0", false, false},
		{"127.0.0.1", false, true}, {"", false, true}, {"no-such-host.invalid:7", false, true},
	}
	for _, row := range rows {
		t.Run(row.address, func(t *testing.T) {
			if safe, err := trust.Loopback(t.Context(), row.address); safe != row.safe || (err != nil) != row.bad {
				t.Errorf("safe: %v, %v", safe, err)
			}
		})
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

// A node without a certificate says so itself.
func TestNoCertificateYet(t *testing.T) {
	c := newCluster(t)
	blank, err := trust.OpenIdentity(t.TempDir(), id(1), "h")
	if err != nil {
		t.Fatal(err)
	}
	a, b := c.node(t, 1, func(c *trust.Config) { c.Identity = blank }), c.node(t, 2)
	a.echo(t, trust.Call)
	_, err = a.Dial(t.Context(), b.addr(), "", trust.Call)
	wants(t, err, meta.ErrDenied)
	_, err = b.Dial(t.Context(), a.addr(), "", trust.Call)
	wants(t, err, meta.ErrDenied)
	c.renew(t, blank)
	works(t, b.dial(t, a, trust.Call))
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

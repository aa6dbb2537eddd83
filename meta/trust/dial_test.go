package trust_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/trust"
	"rankfs/test/eventually"
)

func TestDial(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2)
	a.keys.Store(b.id, trust.KeyID(requestOf(t, b.identity).Key))
	b.keys.Store(a.id, trust.KeyID(requestOf(t, a.identity).Key))
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
	if s := b.Stats(); s.In != 6 || s.Pending != 0 || len(s.Refused) != 0 {
		t.Errorf("accepting side: %+v", s)
	}
	if s := a.Stats(); s.Out != 6 {
		t.Errorf("dialling side: %+v", s)
	}
}

// A node that dials in vain learns why, by an error that says of which kind that is.
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
		{name: "another key", setUp: func(a, b *node) { b.keys.Store(a.id, "that of before") }, is: meta.ErrDenied, says: "was removed", why: "revoked"},
		{name: "a node with another key", setUp: func(a, b *node) { a.keys.Store(b.id, "that of before") }, is: meta.ErrDenied, says: "another key than it joined with"},
		{name: "of another cluster", by: foreign, is: meta.ErrDenied, says: "is not of cluster " + foreign.ca.Cluster()},
		{name: "own certificate expired", setUp: func(a, b *node) { a.clock.move(week); b.clock.move(week) },
			is: meta.ErrDenied, says: "this node: node 0000000000000001: certificate expired at 2031-05-13 07:08:09 UTC, and the clock here says 2031-05-14"},
		{name: "own clock behind", setUp: func(a, b *node) { a.clock.move(-48 * time.Hour) }, is: meta.ErrDenied, says: "valid from 2031-05-05 07:08:09 UTC, and the clock here says 2031-05-04 07:08:09"},
		{name: "clock of the other ahead", setUp: func(a, b *node) { b.clock.move(week) }, is: meta.ErrDenied, says: "bad certificate", why: "certificate"},
		{name: "clock of the other behind", setUp: func(a, b *node) { b.clock.move(-week) }, is: meta.ErrDenied, says: "bad certificate", why: "certificate"},
		{name: "ten years later", setUp: func(a, b *node) { a.clock.move(520 * week); b.clock.move(520 * week) }, is: meta.ErrDenied, says: "set the clocks"},
		{name: "nothing listens", setUp: func(a, b *node) { b.Listener(trust.Call).Close() }, is: meta.ErrUnavailable, says: "nothing listens", why: "unserved"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			b := c.node(t, 2)
			dialler := c
			if row.by != nil {
				dialler = row.by
			}
			a := dialler.node(t, 1)
			if row.setUp == nil || row.why != "unserved" {
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
				eventually.True(t, "the count of "+row.why, func() bool { return b.Stats().Refused[row.why] == 1 })
			}
			eventually.True(t, "no connections", func() bool { return a.Stats().Out == 0 && b.Stats().In == 0 && b.Stats().Pending == 0 })
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
				limit = 2 * time.Second
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
	t.Run("nothing listens", func(t *testing.T) {
		_, err := a.Dial(t.Context(), "127.0.0.1:1", "", trust.Call)
		wants(t, err, meta.ErrUnavailable)
		if want := "dial rankfs-call/1 at 127.0.0.1:1: nothing listens there; is a rankfs mounted there, with --listen at that address?"; err == nil || err.Error() != want {
			t.Errorf("error is %v, want %v", err, want)
		}
	})
	t.Run("no such protocol", func(t *testing.T) {
		for _, p := range []trust.Protocol{trust.Join, "", "h2"} {
			_, err := a.Dial(t.Context(), a.addr(), "", p)
			wants(t, err, meta.ErrInvalid)
		}
	})
}

// What Go says of a host that is not reached is said in words for people.
func TestExplain(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, row := range []struct {
		err  error
		want string
	}{
		{dial(&net.DNSError{Err: "no such host", Name: "node9", Server: "192.0.2.1:53", IsNotFound: true}),
			"the name of that host is not known here; look with: getent hosts node9"},
		{dial(&net.DNSError{Err: "server misbehaving", Name: "node9", Server: "192.0.2.1:53", IsTemporary: true}),
			"the name server does not say where that host is: server misbehaving"},
		{dial(os.NewSyscallError("connect", unix.EHOSTUNREACH)), "no route to host"},
		{dial(os.NewSyscallError("connect", unix.ETIMEDOUT)), "no answer in time; does a firewall drop what is sent there?"},
		{context.Canceled, "given up before there was an answer"},
	} {
		err := trust.Explain(row.err)
		if err.Error() != row.want || !errors.Is(err, meta.ErrUnavailable) || !errors.Is(err, row.err) {
			t.Errorf("%v is %q, want %q", row.err, err, row.want)
		}
	}
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
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
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
	_, _, err = trust.DialJoin(t.Context(), addr, c.ca.Fingerprint(), nil, c.clock.now())
	wants(t, err, meta.ErrDenied)
}

// More dial at once, from one host, than there are places for pending connections.
func TestStorm(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2)
	b.echo(t, trust.Data)
	var wg sync.WaitGroup
	for range 40 {
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

// A host that does not answer holds up no call to another.
func TestAHostThatHangsHoldsUpNoOther(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2)
	b.echo(t, trust.Call)
	hung := serve(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := a.Dial(ctx, hung, "", trust.Call)
			wants(t, err, context.Canceled)
			wants(t, err, meta.ErrUnavailable)
		})
	}
	eventually.True(t, "all to dial", func() bool { return a.Stats().Out == 20 })
	works(t, a.dial(t, b, trust.Call))
	cancel()
	wg.Wait()
	if n := trust.DialLimits(a.Port); n != 0 {
		t.Errorf("%d limits are left", n)
	}
}

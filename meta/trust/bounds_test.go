package trust_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/trust"
	"rankfs/test/eventually"
)

// The time for a handshake is not the time for what comes after it.
func TestHandshakeTimeEnds(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, 1), c.node(t, 2, func(c *trust.Config) { c.HandshakeTime = time.Second })
	b.echo(t, trust.Call)
	var conn net.Conn
	eventually.True(t, "a connection", func() (ok bool) {
		var err error
		conn, err = a.Dial(t.Context(), b.addr(), b.id, trust.Call)
		return err == nil
	})
	defer conn.Close()
	late := b.Stats().Refused["late"]
	knock(t, "127.0.0.1", b) // when its time is over, so is that of the one before
	eventually.True(t, "the other to be late", func() bool { return b.Stats().Refused["late"] > late })
	works(t, conn)
}

// knock connects from an address of this host. A caller that is refused at once may not
// even see that it was connected.
func knock(t testing.TB, source string, b *node) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	conn, err := d.DialContext(t.Context(), "tcp", b.addr())
	if errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// All places are taken by connections that go no further, and are taken again
// as soon as they are free. Real peers get in.
func TestCrowd(t *testing.T) {
	c := newCluster(t)
	for name, says := range map[string][]byte{"nothing": nil, "hello": clientHello(t)} {
		t.Run("that says "+name, func(t *testing.T) {
			a, b := c.node(t, 1), c.node(t, 2)
			b.echo(t, trust.Call)
			from := func(host byte) {
				if conn := knock(t, net.IPv4(127, 0, 1, host).String(), b); conn != nil {
					conn.Write(says)
				}
			}
			for i := range 64 {
				from(byte(i / 8))
			}
			eventually.True(t, "all places taken", func() bool { return b.Stats().Pending == 64 })
			eventually.True(t, "the bound of a host", func() bool { // those that came first may have lost patience
				from(0)
				return b.Stats().Refused["host"] > 0
			})
			eventually.True(t, "the bound of all", func() bool {
				from(100)
				return b.Stats().Refused["handshakes"] > 0
			})
			works(t, a.dial(t, b, trust.Call))
			if s := b.Stats(); s.Pending > 64 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Who connects and goes again at once, over and over, may have a node of the same
// host refused for a moment, but not kept out; and all of them are counted.
func TestManyQuickConnects(t *testing.T) {
	c := newCluster(t)
	b := c.node(t, 2)
	b.echo(t, trust.Call)
	a := c.node(t, 1)
	const workers, each = 16, 625
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				conn, err := net.Dial("tcp", b.addr())
				if errors.Is(err, unix.ECONNRESET) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				conn.(*net.TCPConn).SetLinger(0)
				conn.Close()
			}
		})
	}
	works(t, a.reach(t, b, trust.Call))
	wg.Wait()
	works(t, a.reach(t, b, trust.Call))
	eventually.True(t, "all of them counted", func() bool {
		s, sum := b.Stats(), uint64(0)
		for _, n := range s.Refused {
			sum += n
		}
		return sum >= workers*each && s.Pending == 0
	})
}

// A connection that joins is pending until the end, and not for long.
func TestJoinBounds(t *testing.T) {
	c := newCluster(t)
	b := c.node(t, 2, func(c *trust.Config) { c.JoinTime = 2 * time.Second; c.PendingPerHost = 1 })
	l := b.Listener(trust.Join)
	conn, _, err := trust.DialJoin(t.Context(), b.addr(), c.ca.Fingerprint(), nil, c.clock.now())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	joined, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer joined.Close()
	joined.SetDeadline(time.Time{}) // does not help
	if _, err := joined.Read(make([]byte, 1)); err == nil {
		t.Error("read from a connection that has ended")
	}
	eventually.True(t, "an end of it", func() bool { s := b.Stats(); return s.In == 0 && s.Pending == 0 })
}

func TestConnectionBounds(t *testing.T) {
	c := newCluster(t)
	rows := []struct {
		name   string
		bounds func(*trust.Config)
		why    string
	}{
		{"of all", func(c *trust.Config) { c.Connections = 2 }, "connections"},
		{"of a node", func(c *trust.Config) { c.PerNode = 2 }, "connections"},
		{"waiting", func(c *trust.Config) { c.Waiting = 2 }, "waiting"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			a, b := c.node(t, 1), c.node(t, 2, row.bounds)
			l := b.Listener(trust.Call)
			one := a.dial(t, b, trust.Call)
			a.dial(t, b, trust.Call)
			_, err := a.Dial(t.Context(), b.addr(), "", trust.Call)
			wants(t, err, meta.ErrBusy)
			eventually.True(t, "the count of "+row.why, func() bool { return b.Stats().Refused[row.why] == 1 })
			accepted, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			one.Close()
			accepted.Close()
			eventually.True(t, "room", func() bool { return b.Stats().In == 1 })
			a.dial(t, b, trust.Call)
		})
	}
	t.Run("dialled", func(t *testing.T) {
		a, b := c.node(t, 1, func(c *trust.Config) { c.Connections = 1 }), c.node(t, 2)
		b.echo(t, trust.Call)
		conn := a.dial(t, b, trust.Call)
		_, err := a.Dial(t.Context(), b.addr(), "", trust.Call)
		wants(t, err, meta.ErrBusy)
		conn.Close()
		works(t, a.dial(t, b, trust.Call))
	})
}

// A line says who knocked, and there is not one for each.
func TestRefusalsAreLogged(t *testing.T) {
	c := newCluster(t)
	var mu sync.Mutex
	var lines bytes.Buffer
	b := c.node(t, 2, func(c *trust.Config) { c.Log = slog.New(slog.NewTextHandler(locked{&mu, &lines}, nil)) })
	const knocks = 20
	for range knocks {
		conn := knock(t, "127.0.3.4", b)
		io.WriteString(conn, "GET /\n\n\n")
		io.Copy(io.Discard, conn)
	}
	eventually.True(t, "all counted", func() bool { return b.Stats().Refused["garbage"] == knocks })
	b.Close()
	mu.Lock()
	defer mu.Unlock()
	text := lines.String()
	if n := strings.Count(text, "\n"); n == 0 || n >= knocks || !strings.Contains(text, "from=127.0.3.4:") || !strings.Contains(text, "why=garbage") {
		t.Errorf("%d lines: %s", n, text)
	}
}

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

package trust_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/trust"
	"rankfs/test/eventually"
)

// raw is the configuration of a client that does as it likes, with a
// certificate of the cluster's authority that alter has changed.
func raw(t testing.TB, c *cluster, role trust.Role, alter func(*x509.Certificate)) *tls.Config {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	name := trust.Name{Cluster: c.ca.Cluster(), Role: role, Node: id(9)}
	uri, err := url.Parse(name.String())
	if err != nil {
		t.Fatal(err)
	}
	now := c.clock.now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), URIs: []*url.URL{uri},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if alter != nil {
		alter(template)
	}
	ca, signer := keys(t, c)
	der, err := x509.CreateCertificate(rand.Reader, template, ca, public, signer)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{
		InsecureSkipVerify: true, NextProtos: []string{string(trust.Call)},
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}
}

func TestHostileTLS(t *testing.T) {
	c, foreign := newCluster(t), newCluster(t)
	uris := func(names ...string) func(*x509.Certificate) {
		return func(x *x509.Certificate) {
			x.URIs = nil
			for _, n := range names {
				u, err := url.Parse(n)
				if err != nil {
					t.Fatal(err)
				}
				x.URIs = append(x.URIs, u)
			}
		}
	}
	good := trust.Name{Cluster: c.ca.Cluster(), Role: trust.RoleNode, Node: id(9)}.String()
	with := func(alter func(*x509.Certificate)) *tls.Config { return raw(t, c, trust.RoleNode, alter) }
	speaking := func(protocols ...string) *tls.Config {
		config := with(nil)
		config.NextProtos = protocols
		return config
	}
	without := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{string(trust.Call)}}
	old := with(nil)
	old.MaxVersion = tls.VersionTLS12
	asCA := with(nil)
	ca, signer := keys(t, c)
	asCA.Certificates = []tls.Certificate{{Certificate: [][]byte{ca.Raw}, PrivateKey: signer}}
	stranger := raw(t, foreign, trust.RoleNode, uris(good))
	fca, _ := keys(t, foreign)
	stranger.Certificates[0].Certificate = append(stranger.Certificates[0].Certificate, fca.Raw, ca.Raw)

	rows := []struct {
		name   string
		config *tls.Config
		why    string
	}{
		{"no certificate", without, "handshake"},
		{"another authority", stranger, "certificate"},
		{"another cluster of this authority", with(uris("rankfs://00000000000000ab/node/" + id(9))), "certificate"},
		{"a cluster below this one", with(uris(strings.Replace(good, "://", "://x.", 1))), "certificate"},
		{"another role", raw(t, c, "reader", nil), "certificate"},
		{"expired", with(func(x *x509.Certificate) { x.NotAfter = c.clock.now().Add(-time.Second) }), "certificate"},
		{"not yet valid", with(func(x *x509.Certificate) { x.NotBefore = c.clock.now().Add(time.Second) }), "certificate"},
		{"for servers only", with(func(x *x509.Certificate) { x.ExtKeyUsage = x.ExtKeyUsage[1:] }), "certificate"},
		{"no name", with(uris()), "certificate"},
		{"two names", with(uris(good, good)), "certificate"},
		{"a name and a host", with(func(x *x509.Certificate) { x.DNSNames = []string{"a"} }), "certificate"},
		{"a name of another form", with(uris(good + "/")), "certificate"},
		{"another scheme", with(uris(strings.Replace(good, "rankfs", "https", 1))), "certificate"},
		{"that may sign", with(func(x *x509.Certificate) { x.IsCA, x.BasicConstraintsValid = true, true }), "certificate"},
		{"the authority's own", asCA, "certificate"},
		{"TLS 1.2", old, "version"},
		{"no protocol", speaking(), "protocol"},
		{"another protocol", speaking("h2"), "protocol"},
		{"a later one", speaking("rankfs-call/2"), "protocol"},
		{"two protocols", speaking(string(trust.Join), string(trust.Call)), "protocol"},
	}
	b := c.node(t, 2)
	b.echo(t, trust.Call)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			before := b.Stats()
			if err := attempt(b.addr(), row.config); err == nil {
				t.Error("it was let in")
			}
			eventually.True(t, "the count of "+row.why, func() bool { return b.Stats().Refused[row.why] == before.Refused[row.why]+1 })
			if s := b.Stats(); s.In != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
	if err := attempt(b.addr(), with(nil)); err != nil {
		t.Errorf("with nothing wrong: %v", err)
	}
}

// Why it is refused reaches a client that has sent more than was read.
func TestAlertsArrive(t *testing.T) {
	c := newCluster(t)
	b := c.node(t, 2)
	config := raw(t, c, "reader", nil)
	for range 50 {
		conn, err := tls.Dial("tcp", b.addr(), config)
		if err != nil {
			t.Fatal(err)
		}
		conn.Write(make([]byte, 32<<10))
		_, err = conn.Read(make([]byte, 1))
		conn.Close()
		var alert *net.OpError
		if !errors.As(err, &alert) || alert.Op != "remote error" {
			t.Fatalf("error is %v, want an alert", err)
		}
	}
}

// attempt connects and waits for the greeting.
func attempt(addr string, config *tls.Config) error {
	conn, err := tls.Dial("tcp", addr, config)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	var greeting [1]byte
	if _, err := io.ReadFull(conn, greeting[:]); err != nil {
		return err
	}
	return ping(conn)
}

// A certificate is not enough to learn more than that one is let in; without
// it there is one protocol, and it leads to one listener.
func TestJoinReachesNothingElse(t *testing.T) {
	c := newCluster(t)
	b := c.node(t, 2)
	calls := b.Listener(trust.Call)
	joins := b.Listener(trust.Join)
	config := raw(t, c, trust.RoleNode, nil) // shown, but the port does not ask for it
	config.NextProtos = []string{string(trust.Join)}
	conn, err := tls.Dial("tcp", b.addr(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	joined, err := joins.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer joined.Close()
	if peer, ok := trust.PeerID(joined); ok {
		t.Errorf("it is %s", peer)
	}
	if n := b.Revoke(""); n != 0 {
		t.Errorf("%d connections of no node were cut", n)
	}
	if s := b.Stats(); s.Pending != 1 || s.In != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	calls.Close()
	if conn, err := calls.Accept(); err == nil {
		t.Errorf("%v reached another listener", conn)
	}
}

func TestHostileBytes(t *testing.T) {
	c := newCluster(t)
	huge := append([]byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff}, make([]byte, 1<<14)...) // 16 MiB are announced
	hello := clientHello(t)
	rows := []struct {
		name string
		send func(net.Conn)
		why  string
	}{
		{"HTTP", func(c net.Conn) { io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); io.Copy(io.Discard, c) }, "garbage"},
		{"SSH", func(c net.Conn) { io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n"); io.Copy(io.Discard, c) }, "garbage"},
		{"zeros", func(c net.Conn) { c.Write(make([]byte, 1<<16)); io.Copy(io.Discard, c) }, "garbage"},
		{"a huge hello", func(c net.Conn) { c.Write(huge); io.Copy(io.Discard, c) }, "handshake"},
		{"nothing, and hangs up", func(c net.Conn) {}, "left"},
		{"resets", func(c net.Conn) { c.Write(hello[:9]); c.(*net.TCPConn).SetLinger(0) }, "left"},
		{"half a hello", func(c net.Conn) { c.Write(hello[:len(hello)/2]) }, "left"},
		{"says nothing", func(c net.Conn) { io.Copy(io.Discard, c) }, "late"},
		{"half a hello and waits", func(c net.Conn) { c.Write(hello[:len(hello)/2]); io.Copy(io.Discard, c) }, "late"},
		{"a whole hello and waits", func(c net.Conn) { c.Write(hello); io.Copy(io.Discard, c) }, "late"},
		{"byte by byte", func(c net.Conn) { trickle(c, hello) }, "late"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			b := c.node(t, 2, func(c *trust.Config) {
				if row.why == "late" {
					c.HandshakeTime = 250 * time.Millisecond
				}
			})
			b.echo(t, trust.Call)
			conn, err := net.Dial("tcp", b.addr())
			if err != nil {
				t.Fatal(err)
			}
			row.send(conn)
			conn.Close()
			eventually.True(t, "the count of "+row.why, func() bool { return b.Stats().Refused[row.why] == 1 })
			eventually.True(t, "no connection to be left", func() bool { s := b.Stats(); return s.Pending == 0 && s.In == 0 })
			a := c.node(t, 1)
			eventually.True(t, "a real peer to be in", func() bool { // that may be too short for it too
				conn, err := a.Dial(t.Context(), b.addr(), b.id, trust.Call)
				if err == nil {
					works(t, conn)
					conn.Close()
				}
				return err == nil
			})
		})
	}
}

// clientHello is the first message of a real client.
func clientHello(t *testing.T) []byte {
	near, far := net.Pipe()
	defer far.Close()
	go tls.Client(near, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{string(trust.Call)}}).Handshake()
	buf := make([]byte, 1<<16)
	n, err := far.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

// trickle sends a byte now and then, for as long as it may.
func trickle(c net.Conn, data []byte) {
	for _, b := range data {
		if _, err := c.Write([]byte{b}); err != nil {
			return
		}
		time.Sleep(5 * time.Millisecond) // the pace is what is tested
	}
}

// What was authenticated once is authenticated again.
func TestNothingIsResumed(t *testing.T) {
	c := newCluster(t)
	b := c.node(t, 2)
	b.echo(t, trust.Call)
	config := raw(t, c, trust.RoleNode, nil)
	config.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	for range 3 {
		conn, err := tls.Dial("tcp", b.addr(), config)
		if err != nil {
			t.Fatal(err)
		}
		var greeting [1]byte
		if _, err := io.ReadFull(conn, greeting[:]); err != nil {
			t.Fatal(err)
		}
		works(t, conn)
		if conn.ConnectionState().DidResume {
			t.Error("a session was resumed")
		}
		conn.Close()
	}
}

// A client refuses a server of another cluster before it says its secret.
func TestJoinAnotherCluster(t *testing.T) {
	c, foreign := newCluster(t), newCluster(t)
	token := trust.NewToken(c.ca.Fingerprint())
	pretender := raw(t, foreign, trust.RoleNode, nil)
	ca, _ := keys(t, c)
	fca, _ := keys(t, foreign)
	pretender.NextProtos = []string{string(trust.Join)}
	chains := map[string][][]byte{
		"its own authority":  {pretender.Certificates[0].Certificate[0], fca.Raw},
		"the right one's":    {pretender.Certificates[0].Certificate[0], ca.Raw},
		"the right one only": {ca.Raw},
	}
	for name, chain := range chains {
		t.Run(name, func(t *testing.T) {
			config := pretender.Clone()
			config.Certificates[0].Certificate = chain
			heard := make(chan []byte, 1)
			addr := serve(t, func(c net.Conn) {
				s := tls.Server(c, config)
				s.Write([]byte{'w'})
				said, _ := io.ReadAll(s)
				heard <- said
			})
			_, _, err := trust.DialJoin(t.Context(), addr, token.Authority(), nil, c.clock.now())
			if err == nil {
				t.Error("it was believed")
			}
			if said := <-heard; len(said) != 0 {
				t.Errorf("it was told %d bytes", len(said))
			}
		})
	}
	for name, offset := range map[string]time.Duration{"clock ahead": 30 * 24 * time.Hour, "clock behind": -48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			b := c.node(t, 2)
			_, _, err := trust.DialJoin(t.Context(), b.addr(), token.Authority(), nil, c.clock.now().Add(offset))
			wants(t, err, meta.ErrDenied)
			if err != nil && !strings.Contains(err.Error(), "set the clocks") {
				t.Error(err)
			}
		})
	}
}

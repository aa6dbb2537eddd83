package wiretest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"rankfs/meta/wire"
)

// A Network is a kind of connection.
type Network struct {
	Name   string
	Listen func(t testing.TB) (net.Listener, wire.Dial)
}

// Networks are all kinds, the one in memory first.
var Networks = []Network{{"pipe", Pipe}, {"tcp", TCP}, {"tls", TLS}}

// A pipes is a listener whose connections are in memory, with no buffer.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Pipe listens in memory.
func Pipe(testing.TB) (net.Listener, wire.Dial) {
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	return p, p.dial
}

// TCP listens on loopback.
func TCP(t testing.TB) (net.Listener, wire.Dial) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l, func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}
}

// TLS listens on loopback as a node does.
func TLS(t testing.TB) (net.Listener, wire.Dial) {
	l, dial := TCP(t)
	own := identity(t)
	server := &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13, DynamicRecordSizingDisabled: true}
	pool := x509.NewCertPool()
	pool.AddCert(own.Leaf)
	client := &tls.Config{RootCAs: pool, ServerName: "node"}
	return tls.NewListener(l, server), func(ctx context.Context, node string) (net.Conn, error) {
		raw, err := dial(ctx, node)
		if err != nil {
			return nil, err
		}
		c := tls.Client(raw, client)
		if err := c.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, err
		}
		return c, nil
	}
}

func identity(t testing.TB) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"node"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// Serve runs a server until the end of the test or of stop. Then it has nothing left.
func Serve(t testing.TB, l net.Listener, calls wire.Calls, pushes wire.Pushes, limits wire.Limits) (server *wire.Server, stop func()) {
	t.Helper()
	server, err := wire.NewServer(limits, pushes, calls)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		if n := server.Stats(); n.Conns != 0 || n.Queued != 0 || n.UnderWay != 0 {
			t.Errorf("after serve: %+v, want every gauge zero", n)
		}
	})
	t.Cleanup(stop)
	return server, stop
}

// Close closes a client, which has nothing left then.
func Close(t testing.TB, c *wire.Client) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if n := c.Stats(); n.Conns != 0 || n.UnderWay != 0 || n.Waiting != 0 {
		t.Errorf("after close: %+v, want every gauge zero", n)
	}
}

// Pieces cuts a buffer of n bytes into pieces of up to max bytes, some empty.
func Pieces(n, max int) (whole []byte, parts [][]byte) {
	whole = make([]byte, n)
	rest := whole
	for i := 1; len(rest) > 0; i++ {
		k := min(len(rest), i*7919%(max+1))
		parts, rest = append(parts, rest[:k]), rest[k:]
	}
	return whole, parts
}

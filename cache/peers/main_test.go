package peers_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"math/big"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rankfs/cache/peers"
	"rankfs/meta"
	"rankfs/meta/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var dataset = peers.ID{1, 2, 3}

// A store has records whose bytes say which they are. They are up to mean*2
// bytes long, some of them empty.
type store struct {
	lacks  atomic.Bool // what it would have to fetch
	mean   uint64
	before func(ctx context.Context) error // each record; may be nil
	file   string                          // that File opens
}

func (s *store) length(record uint64) int {
	if record%7 == 3 {
		return 0
	}
	return int(record * 2654435761 % (2 * s.mean))
}

func (s *store) record(b []byte, record uint64) []byte {
	from := len(b)
	for n := s.length(record); len(b)-from < n; {
		b = binary.LittleEndian.AppendUint64(b, record*0x9e3779b97f4a7c15+uint64(len(b)-from))
	}
	return b[:from+s.length(record)]
}

func (s *store) Gather(ctx context.Context, id peers.ID, runs []peers.Run, emit func([]byte) error) error {
	if id != dataset {
		return meta.ErrNotExist
	}
	var b []byte
	for _, r := range runs {
		for record := r.First; record < r.First+r.N; record++ {
			if s.before != nil {
				if err := s.before(ctx); err != nil {
					return err
				}
			}
			b = s.record(b[:0], record)
			if err := emit(b); err != nil {
				return err
			}
			clear(b) // it was only lent
		}
	}
	return nil
}

func (s *store) Kept(ctx context.Context, dataset peers.ID, runs []peers.Run, emit func([]byte) error) error {
	if s.lacks.Load() {
		return meta.ErrBusy
	}
	return s.Gather(ctx, dataset, runs, emit)
}

func (s *store) File(ctx context.Context, hash peers.ID) (*os.File, int64, error) {
	f, err := os.Open(s.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, meta.ErrNotExist
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// want is what a gather of runs has to bring.
func (s *store) want(runs []peers.Run) []byte {
	var b []byte
	for _, r := range runs {
		for record := r.First; record < r.First+r.N; record++ {
			b = s.record(b, record)
		}
	}
	return b
}

// A network is a kind of connection.
type network struct {
	name   string
	listen func(t testing.TB) (net.Listener, wire.Dial)
}

var networks = []network{{"pipe", listenPipe}, {"tcp", listenTCP}, {"tls", listenTLS}}

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

func listenPipe(testing.TB) (net.Listener, wire.Dial) {
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	return p, p.dial
}

func listenTCP(t testing.TB) (net.Listener, wire.Dial) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l, func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}
}

func listenTLS(t testing.TB) (net.Listener, wire.Dial) {
	l, dial := listenTCP(t)
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

// serve runs a server until the end of the test or of stop.
func serve(t testing.TB, l net.Listener, s peers.Store, limits wire.Limits) (server *wire.Server, stop func()) {
	t.Helper()
	server, err := wire.NewServer(peers.Calls(s), limits)
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

// A client asks for records, over a transport of its own.
type client struct {
	*peers.Client
	wire *wire.Client
}

func connect(dial wire.Dial, c wire.Config) *client {
	w := wire.New(dial, c)
	return &client{peers.New(w, peers.Config{}), w}
}

func (c *client) Stats() wire.ClientStats { return c.wire.Stats() }
func (c *client) Nodes() []wire.NodeStats { return c.wire.Nodes() }
func (c *client) Close() error            { return c.wire.Close() }

func (c *client) Keep(keep func(node string) bool) {
	c.wire.Keep(keep)
	c.Client.Keep(keep)
}

func newClient(t testing.TB, dial wire.Dial, c wire.Config) *client {
	t.Helper()
	k := connect(dial, c)
	t.Cleanup(func() { closeClient(t, k) })
	return k
}

func closeClient(t testing.TB, k *client) {
	t.Helper()
	if err := k.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if n := k.Stats(); n.Conns != 0 || n.UnderWay != 0 || n.Waiting != 0 {
		t.Errorf("after close: %+v, want every gauge zero", n)
	}
}

// pieces cuts a buffer of n bytes into pieces of up to max bytes, some empty.
func pieces(n, max int) (whole []byte, parts [][]byte) {
	whole = make([]byte, n)
	rest := whole
	for i := 1; len(rest) > 0; i++ {
		k := min(len(rest), i*7919%(max+1))
		parts, rest = append(parts, rest[:k]), rest[k:]
	}
	return whole, parts
}

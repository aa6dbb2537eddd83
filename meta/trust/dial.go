package trust

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"rankfs/meta"
)

const (
	// dialTime bounds dialling where the caller's context is longer.
	dialTime = 10 * time.Second
	// A port without a free place for a pending connection resets new connections, for at most three
	// times its patience. So a dial is tried again, for longer than that.
	retryTime = 4 * patience
	lastPause = 800 * time.Millisecond
)

// Dial connects to a node, or to any node at that address if node is empty. When it
// returns, the other end has let this node in. An error that is meta.ErrDenied will not
// go away by trying again; meta.ErrUnavailable and meta.ErrBusy may.
func (p *Port) Dial(ctx context.Context, address, node string, protocol Protocol) (net.Conn, error) {
	if p.servers[protocol] == nil || protocol == Join {
		return nil, fmt.Errorf("dial %s: protocol %q %w", address, protocol, meta.ErrInvalid)
	}
	if err := p.begin(); err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	defer p.wg.Done()
	c, err := p.dial(ctx, address, node, protocol)
	if err != nil {
		p.mu.Lock()
		p.mu.out--
		p.mu.Unlock()
		return nil, fmt.Errorf("dial %s at %s: %w", protocol, address, err)
	}
	if err := allow(p.config.Allowed, c.peer, c.key); err != nil { // once more, now that it is registered: see Port
		c.cut()
		return nil, fmt.Errorf("dial %s at %s: %w", protocol, address, err)
	}
	return c, nil
}

// begin counts a connection before it is one.
func (p *Port) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return net.ErrClosed
	}
	if p.mu.out >= p.config.Connections {
		return meta.Worded(meta.ErrBusy, "this node has dialled %d connections, and makes no more", p.mu.out)
	}
	p.mu.out++
	p.wg.Add(1)
	return nil
}

// dial connects to a node, for one protocol. The connection is among those of the port, where
// Close and Revoke find it, before it is used.
func (p *Port) dial(ctx context.Context, address, node string, protocol Protocol) (*conn, error) {
	if err := p.config.Identity.ready(p.config.Authority, p.config.Now()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	var t *tls.Conn
	err := p.limits.do(ctx, address, func() (err error) {
		t, err = connect(ctx, address, p.clientConfig(protocol, node))
		return err
	})
	if err != nil {
		return nil, err
	}
	name, err := nameIn(t.ConnectionState().PeerCertificates[0])
	if err != nil {
		t.NetConn().Close()
		return nil, err
	}
	c := &conn{Conn: t, raw: t.NetConn(), forget: p.forget, peer: name.Node, role: name.Role, key: keyIn(t.ConnectionState().PeerCertificates[0])}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		c.raw.Close()
		return nil, net.ErrClosed
	}
	p.add(c)
	return c, nil
}

// DialJoin connects a node that has no certificate, or one that has expired, to
// a node of the cluster whose authority has the fingerprint. It fails before it sends
// anything to a node of another cluster. The authority's certificate, in PEM, is what
// Adopt takes. What is sent must prove itself: a token, or a Request of a node whose
// key the cluster knows. allowed is Config.Allowed; nil if the caller knows no node
// yet.
func DialJoin(ctx context.Context, address string, known Fingerprint, allowed func(node, key string) bool, now time.Time) (net.Conn, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	var found *Authority
	t, err := connect(ctx, address, &tls.Config{
		MinVersion:         tls.VersionTLS13,
		NextProtos:         []string{string(Join)},
		InsecureSkipVerify: true, // VerifyConnection does
		VerifyConnection: func(s tls.ConnectionState) (err error) {
			if found, err = findAuthority(s.PeerCertificates, known); err != nil {
				return err
			}
			name, err := found.check(s.PeerCertificates, x509.ExtKeyUsageServerAuth, now)
			if err == nil && allowed != nil {
				err = allow(allowed, name.Node, keyIn(s.PeerCertificates[0]))
			}
			return err
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("join at %s: %w", address, err)
	}
	return t, found.Certificate(), nil
}

// findAuthority finds the authority of a fingerprint in what a server has shown.
func findAuthority(chain []*x509.Certificate, known Fingerprint) (*Authority, error) {
	for _, cert := range chain {
		if sha256.Sum256(cert.Raw) != known {
			continue
		}
		cluster, err := clusterOf(cert)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", meta.ErrDenied, err)
		}
		a := &Authority{cluster: cluster, cert: cert, roots: x509.NewCertPool()}
		a.roots.AddCert(cert)
		return a, nil
	}
	return nil, meta.Worded(meta.ErrDenied, "it is not of the token's cluster: check the address, or get a token of this cluster")
}

// connect makes a connection that was greeted.
func connect(ctx context.Context, address string, config *tls.Config) (*tls.Conn, error) {
	begun := time.Now()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, lastPause) {
		t, err := connectOnce(ctx, address, config)
		if !errors.Is(err, errTurnedAway) || time.Since(begun) > retryTime {
			return t, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}

func connectOnce(ctx context.Context, address string, config *tls.Config) (*tls.Conn, error) {
	// A reset may come before the connection is even noticed here.
	dialer := net.Dialer{Control: tune, KeepAliveConfig: probes}
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, explain(err)
	}
	t := tls.Client(raw, config)
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	err = greet(t)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		raw.Close()
		return nil, explain(err)
	}
	return t, nil
}

// greet ends when the server has said what it makes of this client.
func greet(t *tls.Conn) error {
	if err := t.Handshake(); err != nil {
		return err
	}
	var greeting [1]byte
	if _, err := io.ReadFull(t, greeting[:]); err != nil {
		return err
	}
	return greeted(greeting[0])
}

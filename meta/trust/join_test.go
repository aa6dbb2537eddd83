package trust_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"

	"rankfs/meta/trust"
)

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
	conn, ca, err := trust.DialJoin(t.Context(), voter.addr(), token.Authority(), nil, c.clock.now())
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
	authority, err := trust.Adopt(dir, ca, token.Authority())
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
	if token.Hash() != hash {
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

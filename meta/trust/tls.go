package trust

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"

	"rankfs/meta"
)

// base is the configuration of both ends of all connections. Nothing is resumed:
// each connection has a handshake that looks at certificates.
func (p *Port) base() *tls.Config {
	return &tls.Config{
		MinVersion:                  tls.VersionTLS13,
		MaxVersion:                  tls.VersionTLS13,
		Time:                        p.config.Now,
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true, // bulk, not pages for people
	}
}

// serverConfig is for a connection that has named one protocol.
func (p *Port) serverConfig(protocol Protocol) *tls.Config {
	c := p.base()
	c.NextProtos = []string{string(protocol)}
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return p.config.Identity.shown(p.config.Authority)
	}
	if protocol == Join {
		return c
	}
	c.ClientAuth = tls.RequireAnyClientCert
	c.VerifyConnection = func(s tls.ConnectionState) error {
		_, err := p.config.Authority.check(s.PeerCertificates, x509.ExtKeyUsageClientAuth, p.config.Now())
		return err
	}
	return c
}

// clientConfig verifies the whole chain itself, so that there is one judge for
// both ends; the names that crypto/tls would look at are not those that matter.
func (p *Port) clientConfig(protocol Protocol, node string) *tls.Config {
	c := p.base()
	c.NextProtos = []string{string(protocol)}
	c.InsecureSkipVerify = true
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return p.config.Identity.shown(p.config.Authority)
	}
	c.VerifyConnection = func(s tls.ConnectionState) error {
		name, err := p.config.Authority.check(s.PeerCertificates, x509.ExtKeyUsageServerAuth, p.config.Now())
		if err != nil {
			return err
		}
		if node != "" && name.Node != node {
			return meta.Worded(meta.ErrDenied, "node %s answers, not %s", name.Node, node)
		}
		// Before the greeting, which only such a node is believed.
		return allow(p.config.Allowed, name.Node, keyIn(s.PeerCertificates[0]))
	}
	return c
}

// server handles one pending connection. Its configuration is found once it says hello.
func (p *Port) server(conn net.Conn, g *pendingConn) *tls.Conn {
	c := p.base()
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		p.pending.heard(g)
		return p.choose(hello)
	}
	return tls.Server(conn, c)
}

// choose picks the configuration by the one protocol that a client names. A
// client that names several would leave open which rules are its own.
func (p *Port) choose(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if !slices.Contains(hello.SupportedVersions, tls.VersionTLS13) {
		return nil, errVersion
	}
	if len(hello.SupportedProtos) != 1 {
		return nil, errProtocol
	}
	if c := p.servers[Protocol(hello.SupportedProtos[0])]; c != nil {
		return c, nil
	}
	return nil, errProtocol
}

// allow has a node in if it may talk to this one.
func allow(allowed func(node, key string) bool, node, key string) error {
	if allowed(node, key) {
		return nil
	}
	return meta.Worded(meta.ErrDenied, "node %s is not of the cluster any more, or has another key than it joined with", node)
}

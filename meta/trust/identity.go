package trust

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"rankfs/meta"
)

const (
	nodeCert = "node.crt"
	nodeKey  = "node.key"
)

// An Identity proves a node to others: a key, which never leaves it, and the
// newest certificate for it. Its methods may be called concurrently, except Renew,
// which writes: it is for the one goroutine that watches Due.
type Identity struct {
	dir  keyDir
	node string
	host string
	key  ed25519.PrivateKey
	cert atomic.Pointer[tls.Certificate] // nil before the first Renew
}

// OpenIdentity opens the identity of a node, or makes its key.
func OpenIdentity(dir, node, host string) (*Identity, error) {
	if !isID(node) || !meta.IsHost(host) {
		return nil, fmt.Errorf("identity of node %q on host %q %w", node, host, meta.ErrInvalid)
	}
	i := &Identity{dir: keyDir(dir), node: node, host: host}
	text, err := i.dir.read(nodeKey, secretMode)
	switch {
	case errors.Is(err, meta.ErrNotExist):
		err = i.makeKey()
	case err == nil:
		i.key, err = decodeKey(text)
		if err != nil {
			err = fmt.Errorf("%s: %w: remove it with %s and join again with a token", i.dir.path(nodeKey), err, nodeCert)
		}
	}
	if err != nil {
		return nil, err
	}
	return i, i.load()
}

func (i *Identity) makeKey() (err error) {
	if _, i.key, err = ed25519.GenerateKey(rand.Reader); err != nil {
		return fmt.Errorf("make key of node: %w", err)
	}
	text, err := encodeKey(i.key)
	if err != nil {
		return err
	}
	return i.dir.write(nodeKey, text, secretMode)
}

// load reads the certificate, if there is one.
func (i *Identity) load() error {
	text, err := i.dir.read(nodeCert, publicMode)
	if errors.Is(err, meta.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	cert, err := i.certificate(text)
	if err != nil {
		return fmt.Errorf("%s: %w: remove it and join again with a token", i.dir.path(nodeCert), err)
	}
	i.cert.Store(cert)
	return nil
}

// certificate joins a certificate to the key that it must be about.
func (i *Identity) certificate(text []byte) (*tls.Certificate, error) {
	leaf, err := decodeCertificate(text)
	if err != nil {
		return nil, err
	}
	if name, err := nameIn(leaf); err != nil || name.Node != i.node || !matches(leaf, i.key) {
		return nil, fmt.Errorf("certificate %w: it is of another node or key", meta.ErrCorrupt)
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: i.key, Leaf: leaf}, nil
}

// Request is the request that the authority has to sign.
func (i *Identity) Request() ([]byte, error) { return encodeRequest(i.key, i.node, i.host) }

// Renew takes what the authority signed. Connections go on as they are; the
// next one shows the new certificate.
func (i *Identity) Renew(text []byte, by *Authority, now time.Time) error {
	cert, err := i.certificate(text)
	if err != nil {
		return fmt.Errorf("renew: %w", err)
	}
	if _, err := by.check([]*x509.Certificate{cert.Leaf}, x509.ExtKeyUsageClientAuth, now); err != nil {
		return fmt.Errorf("renew: %w", err)
	}
	if err := i.dir.write(nodeCert, text, publicMode); err != nil {
		return err
	}
	i.cert.Store(cert)
	return nil
}

// Due reports whether it is time for another certificate: two thirds of the
// life of this one are over, or there is none, or it lasts for longer than one
// does because the clock was ahead when it was signed.
func (i *Identity) Due(now time.Time) bool {
	cert := i.cert.Load()
	if cert == nil {
		return true
	}
	left := cert.Leaf.NotAfter.Sub(now)
	return left <= Life/3 || left > Life+skew
}

// Role is the role in the certificate; RoleNode if there is none.
func (i *Identity) Role() Role {
	if cert := i.cert.Load(); cert != nil {
		if name, err := nameIn(cert.Leaf); err == nil {
			return name.Role
		}
	}
	return RoleNode
}

// Until is when the certificate expires; zero if there is none.
func (i *Identity) Until() time.Time {
	if cert := i.cert.Load(); cert != nil {
		return cert.Leaf.NotAfter
	}
	return time.Time{}
}

// ready says why this node cannot show itself to others, if so.
func (i *Identity) ready(by *Authority, now time.Time) error {
	cert := i.cert.Load()
	if cert == nil {
		return fmt.Errorf("certificate of this node %w: join with a token", meta.ErrDenied)
	}
	if _, err := by.check([]*x509.Certificate{cert.Leaf}, x509.ExtKeyUsageClientAuth, now); err != nil {
		return fmt.Errorf("this node: %w", err)
	}
	return nil
}

// shown is the certificate for a handshake, with the authority's beside it: by
// that a new node recognizes the cluster of its token.
func (i *Identity) shown(by *Authority) (*tls.Certificate, error) {
	cert := i.cert.Load()
	if cert == nil {
		return nil, fmt.Errorf("certificate of this node %w: join with a token", meta.ErrDenied)
	}
	with := *cert
	with.Certificate = [][]byte{cert.Leaf.Raw, by.cert.Raw}
	return &with, nil
}

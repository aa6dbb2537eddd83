package trust

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/url"
	"time"

	"rankfs/meta"
)

// A Request asks the authority for a certificate. Whether the node may have
// that id is for the authority to decide: the request proves only that its sender has
// the key.
type Request struct {
	Key  ed25519.PublicKey
	Node string
	Host string
}

// maxRequest bounds a request on the wire; one is of about 300 bytes.
const maxRequest = 2 << 10

// encodeRequest makes a PKCS #10 request: its signature proves that the sender has the
// key. A replay of it is harmless, for the same reason.
func encodeRequest(key ed25519.PrivateKey, node, host string) ([]byte, error) {
	template := &x509.CertificateRequest{Subject: subject(node, host)}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, fmt.Errorf("request certificate: %w", err)
	}
	return der, nil
}

// subject has the host and the node's id: a request's are read from it, and in a
// certificate it is for people who look at it with other tools.
func subject(node, host string) pkix.Name {
	return pkix.Name{CommonName: host, SerialNumber: node}
}

// ParseRequest reads what Identity.Request made on another node.
func ParseRequest(der []byte) (Request, error) {
	if len(der) > maxRequest {
		return Request{}, fmt.Errorf("request of %d bytes for a certificate %w", len(der), meta.ErrInvalid)
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return Request{}, fmt.Errorf("request for a certificate %w: it cannot be read", meta.ErrInvalid)
	}
	if err := csr.CheckSignature(); err != nil {
		return Request{}, fmt.Errorf("request for a certificate %w: its sender has not shown the key", meta.ErrDenied)
	}
	key, ok := csr.PublicKey.(ed25519.PublicKey)
	r := Request{Key: key, Node: csr.Subject.SerialNumber, Host: csr.Subject.CommonName}
	if !ok {
		return Request{}, fmt.Errorf("request for a certificate %w: its key is not Ed25519", meta.ErrInvalid)
	}
	return r, r.check()
}

func (r Request) check() error {
	if len(r.Key) != ed25519.PublicKeySize || !isID(r.Node) || !meta.IsHost(r.Host) {
		return fmt.Errorf("request for a certificate %w: want an id of 16 hex digits and a host", meta.ErrInvalid)
	}
	return nil
}

// Sign gives a node a certificate, in PEM. The caller has made sure that the
// key is the one of that node. life is Life, if zero.
func (a *Authority) Sign(r Request, role Role, now time.Time, life time.Duration) ([]byte, error) {
	if life == 0 {
		life = Life
	}
	if !a.CanSign() {
		return nil, errKeyless
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	name := Name{Cluster: a.cluster, Role: role, Node: r.Node}
	if _, err := parseName(name.String()); err != nil {
		return nil, err
	}
	if err := inTime(a.cert, now); err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	var der []byte
	err := a.key.use(func(key ed25519.PrivateKey) (err error) {
		der, err = x509.CreateCertificate(rand.Reader, a.leaf(r, name, now, life), a.cert, r.Key, key)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sign certificate of node %s: %w", r.Node, err)
	}
	return encode(certificateBlock, der), nil
}

// leaf is valid within the life of the authority, so that only its own times have to be
// checked. It is valid from the beginning of that life: were it valid from now, and the
// signer's clock ahead, other nodes would refuse it.
func (a *Authority) leaf(r Request, name Name, now time.Time, life time.Duration) *x509.Certificate {
	until := now.Add(life)
	if until.After(a.cert.NotAfter) {
		until = a.cert.NotAfter
	}
	return &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               subject(r.Node, r.Host),
		NotBefore:             a.cert.NotBefore,
		NotAfter:              until,
		URIs:                  []*url.URL{name.uri()},
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
}

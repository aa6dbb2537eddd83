package trust

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"time"

	"rankfs/meta"
)

const (
	authorityCert = "ca.crt"
	authorityKey  = "ca.key"
)

const (
	// Life of a node's certificate. A node that is off for longer has to be
	// let in anew, so it outlasts a long weekend; it bounds how long a stolen
	// one is of use where a revocation has not arrived.
	Life = 7 * 24 * time.Hour
	// authorityLife is longer than a cluster. Renewing it by hand is a new cluster.
	authorityLife = 10 * 365 * 24 * time.Hour
	// skew is how much more than Life may be left of a certificate before the
	// clock that it was signed by is taken to have been ahead.
	skew = 10 * time.Minute
)

// A Fingerprint is the SHA-256 of an authority's certificate.
type Fingerprint [sha256.Size]byte

// String is the fingerprint as other tools print it, without colons.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// An Authority is the root of trust of a cluster. A voter has its key and can sign;
// other nodes have its certificate alone. Its methods may be called concurrently,
// except Import and Forget, which write.
type Authority struct {
	dir     keyDir
	cluster string
	cert    *x509.Certificate
	roots   *x509.CertPool
	key     secret // none where there is only the certificate
}

// Create makes the authority of a new cluster in dir, where there must be none.
func Create(dir string, now time.Time) (*Authority, error) {
	v := keyDir(dir)
	if err := v.vacant(); err != nil {
		return nil, err
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key of authority: %w", err)
	}
	der, err := selfSigned(key, newID(), now)
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	// The certificate comes last: without it there is no authority, and a
	// crash before it leaves a key that no node trusts.
	text, err := encodeKey(key)
	defer func() { clear(key); clear(text) }()
	if err == nil {
		err = v.write(authorityKey, text, secretMode)
	}
	if err == nil {
		err = v.write(authorityCert, encode(certificateBlock, der), publicMode)
	}
	if err != nil {
		return nil, err
	}
	return OpenAuthority(dir)
}

// vacant refuses a directory that has an authority.
func (v keyDir) vacant() error {
	switch _, err := v.read(authorityCert, publicMode); {
	case err == nil:
		return fmt.Errorf("authority %s %w: this node is of a cluster; use a new state directory for another",
			v.path(authorityCert), meta.ErrExist)
	case !errors.Is(err, meta.ErrNotExist):
		return err
	}
	return nil
}

func newID() string {
	var id [8]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

func serial() *big.Int {
	var b [16]byte
	rand.Read(b[:])
	b[0] &= 0x7f
	b[15] |= 1 // never zero
	return new(big.Int).SetBytes(b[:])
}

// selfSigned is a certificate that can speak of one cluster only: the names
// that it may sign are constrained to it.
func selfSigned(key ed25519.PrivateKey, cluster string, now time.Time) ([]byte, error) {
	template := &x509.Certificate{
		SerialNumber:                serial(),
		Subject:                     pkix.Name{CommonName: "rankfs cluster " + cluster},
		NotBefore:                   now.Add(-24 * time.Hour),
		NotAfter:                    now.Add(authorityLife),
		KeyUsage:                    x509.KeyUsageCertSign,
		BasicConstraintsValid:       true,
		IsCA:                        true,
		MaxPathLenZero:              true,
		PermittedURIDomains:         []string{cluster},
		PermittedDNSDomainsCritical: true, // of all constraints
	}
	return x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
}

// Adopt stores the certificate of the authority that a node was told of. known
// is what the node's token says, or another source that is trusted.
func Adopt(dir string, certificate []byte, known Fingerprint) (*Authority, error) {
	v := keyDir(dir)
	if err := v.vacant(); err != nil {
		return nil, err
	}
	cert, _, err := parseAuthority(certificate)
	if err != nil {
		return nil, err
	}
	if got := Fingerprint(sha256.Sum256(cert.Raw)); got != known {
		return nil, fmt.Errorf("authority has fingerprint %v, not %v: %w", got, known, meta.ErrDenied)
	}
	// The key, if there is one, is of an authority that was never finished.
	if err := v.remove(authorityKey); err != nil {
		return nil, err
	}
	if err := v.write(authorityCert, certificate, publicMode); err != nil {
		return nil, err
	}
	return OpenAuthority(dir)
}

// OpenAuthority opens what Create or Adopt made. It is meta.ErrNotExist that
// there is none: the node is of no cluster.
func OpenAuthority(dir string) (*Authority, error) {
	v := keyDir(dir)
	text, err := v.read(authorityCert, publicMode)
	if err != nil {
		return nil, err
	}
	cert, cluster, err := parseAuthority(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: copy it from another node", v.path(authorityCert), err)
	}
	a := &Authority{dir: v, cluster: cluster, cert: cert, roots: x509.NewCertPool()}
	a.roots.AddCert(cert)
	text, err = v.read(authorityKey, secretMode)
	defer clear(text)
	if errors.Is(err, meta.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	if err := a.setKey(text); err != nil {
		return nil, fmt.Errorf("%s: %w: remove it, and another voter will send it", v.path(authorityKey), err)
	}
	return a, nil
}

// parseAuthority returns the certificate of an authority and its cluster.
func parseAuthority(text []byte) (*x509.Certificate, string, error) {
	cert, err := decodeCertificate(text)
	if err != nil {
		return nil, "", err
	}
	cluster, err := clusterOf(cert)
	return cert, cluster, err
}

// clusterOf is the id of the cluster that an authority's certificate is for.
func clusterOf(cert *x509.Certificate) (string, error) {
	if !cert.IsCA || !cert.MaxPathLenZero || len(cert.PermittedURIDomains) != 1 || !isID(cert.PermittedURIDomains[0]) {
		return "", fmt.Errorf("certificate of an authority %w: it is of something else", meta.ErrInvalid)
	}
	return cert.PermittedURIDomains[0], nil
}

func (a *Authority) setKey(text []byte) error {
	key, err := decodeKey(text)
	if err != nil {
		return err
	}
	if !matches(a.cert, key) {
		return fmt.Errorf("key %w: it is of another authority", meta.ErrCorrupt)
	}
	a.key.set(key)
	return nil
}

// Cluster is the id of the cluster.
func (a *Authority) Cluster() string { return a.cluster }

// Certificate is the certificate that a node has to have, in PEM.
func (a *Authority) Certificate() []byte { return encode(certificateBlock, a.cert.Raw) }

// Fingerprint names the authority, in a token.
func (a *Authority) Fingerprint() Fingerprint { return sha256.Sum256(a.cert.Raw) }

// CanSign reports whether the key is here.
func (a *Authority) CanSign() bool { return a.key.known() }

// Export returns the key, which may be sent to another voter only.
func (a *Authority) Export() (text []byte, err error) {
	err = a.key.use(func(key ed25519.PrivateKey) error {
		text, err = encodeKey(key)
		return err
	})
	return text, err
}

// Import stores the key that another voter exported. One that is there is not
// written again, which would leave the bytes of the file before it on the disk.
func (a *Authority) Import(text []byte) error {
	key, err := decodeKey(text)
	if err != nil {
		return fmt.Errorf("import key of authority: %w", err)
	}
	if !matches(a.cert, key) {
		return fmt.Errorf("import key of authority: key %w: it is of another authority", meta.ErrInvalid)
	}
	if text, err = encodeKey(key); err != nil {
		return err
	}
	defer clear(text)
	if old, err := a.dir.read(authorityKey, secretMode); err != nil || !bytes.Equal(old, text) {
		if err := a.dir.write(authorityKey, text, secretMode); err != nil {
			return err
		}
	}
	a.key.set(key)
	return nil
}

// Forget removes the key of a node that is a voter no more, from memory and from
// the disk, as far as a disk that writes elsewhere what is written again lets it.
func (a *Authority) Forget() error {
	a.key.wipe()
	return a.dir.shred(authorityKey)
}

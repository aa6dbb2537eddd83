package trust

import (
	"crypto/x509"
	"time"
)

// Parts of the package that its tests look at.
var (
	ParseName = parseName
	NameIn    = nameIn
	Explain   = explain
)

// Secret is what must not be printed.
func Secret(t Token) []byte {
	h := t.held()
	return h.secret[:]
}

// Mistaken is an authority that takes itself for another cluster's.
func Mistaken(a *Authority, cluster string) *Authority {
	return &Authority{cluster: cluster, cert: a.cert, roots: a.roots}
}

// Check is the judge of certificates.
func (a *Authority) Check(chain []*x509.Certificate, now time.Time) (Name, error) {
	return a.check(chain, x509.ExtKeyUsageClientAuth, now)
}

// Leaf is the certificate in use.
func (i *Identity) Leaf() *x509.Certificate { return i.cert.Load().Leaf }

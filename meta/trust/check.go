package trust

import (
	"crypto/x509"
	"fmt"
	"time"

	"rankfs/meta"
)

// check returns the name in a chain of certificates, if the chain is genuine, of this
// cluster, for an accepted role, and valid now. It is the only place where that is
// decided, for both ends of a connection.
func (a *Authority) check(chain []*x509.Certificate, use x509.ExtKeyUsage, now time.Time) (Name, error) {
	if len(chain) == 0 {
		return Name{}, fmt.Errorf("no certificate: %w", meta.ErrDenied)
	}
	leaf := chain[0]
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots:         a.roots,
		Intermediates: x509.NewCertPool(), // there are none
		CurrentTime:   leaf.NotBefore,     // time is looked at below, for a better answer
		KeyUsages:     []x509.ExtKeyUsage{use},
	})
	if err != nil {
		return Name{}, fmt.Errorf("certificate is not of cluster %s: %w", a.cluster, meta.ErrDenied)
	}
	name, err := nameIn(leaf)
	if err != nil {
		return Name{}, fmt.Errorf("%w: %w", meta.ErrDenied, err)
	}
	if name.Cluster != a.cluster {
		return Name{}, fmt.Errorf("certificate is of cluster %s, not %s: %w", name.Cluster, a.cluster, meta.ErrDenied)
	}
	if name.Role != RoleMember && name.Role != RoleOperator && name.Role != RoleNode {
		return Name{}, fmt.Errorf("role %s of certificate: %w", name.Role, meta.ErrDenied)
	}
	if err := inTime(leaf, now); err != nil {
		return Name{}, fmt.Errorf("node %s: %w", name.Node, err)
	}
	return name, nil
}

// An Untimely is the error of a certificate that is not of now, as the
// clock here has it. It is meta.ErrDenied.
type Untimely struct {
	Off  time.Duration // from what the clock here shows to when it is valid; negative if it has expired
	says string
}

func (u *Untimely) Error() string { return u.says }

// Unwrap makes it meta.ErrDenied.
func (u *Untimely) Unwrap() error { return meta.ErrDenied }

// inTime says in words of clocks whether a certificate is valid now: it is a
// clock that is wrong more often than a certificate.
func inTime(c *x509.Certificate, now time.Time) error {
	const form = "2006-01-02 15:04:05 UTC"
	here := now.UTC().Format(form)
	switch {
	case now.Before(c.NotBefore):
		return &Untimely{c.NotBefore.Sub(now), fmt.Sprintf("certificate is valid from %s, and the clock here says %s: %v: set the clocks",
			c.NotBefore.UTC().Format(form), here, meta.ErrDenied)}
	case now.After(c.NotAfter):
		return &Untimely{c.NotAfter.Sub(now), fmt.Sprintf("certificate expired at %s, and the clock here says %s: %v: set the clocks, or join again with a token",
			c.NotAfter.UTC().Format(form), here, meta.ErrDenied)}
	}
	return nil
}

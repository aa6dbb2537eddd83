package trust_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rankfs/meta/trust"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A clock is moved by hand.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time        { return time.Unix(0, c.at.Load()) }
func (c *clock) move(by time.Duration) { c.at.Add(int64(by)) }

// A cluster is an authority and its clock.
type cluster struct {
	ca    *trust.Authority
	clock *clock
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	clock := newClock()
	ca, err := trust.Create(t.TempDir(), clock.now())
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{ca, clock}
}

func id(n int) string { return fmt.Sprintf("%016x", n) }

// identity makes one that the cluster has signed.
func (c *cluster) identity(t testing.TB, node string) *trust.Identity {
	t.Helper()
	i, err := trust.OpenIdentity(t.TempDir(), node, "host-"+node)
	if err != nil {
		t.Fatal(err)
	}
	c.renew(t, i)
	return i
}

func (c *cluster) sign(t testing.TB, i *trust.Identity, role trust.Role) []byte {
	t.Helper()
	text, err := c.ca.Sign(requestOf(t, i), role, c.clock.now(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// requestOf is what an identity asks for, as the authority reads it.
func requestOf(t testing.TB, i *trust.Identity) trust.Request {
	t.Helper()
	der, err := i.Request()
	if err != nil {
		t.Fatal(err)
	}
	r, err := trust.ParseRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (c *cluster) renew(t testing.TB, i *trust.Identity) {
	t.Helper()
	if err := i.Renew(c.sign(t, i, trust.RoleNode), c.ca, c.clock.now()); err != nil {
		t.Fatal(err)
	}
}

// wants compares an error with what it should be.
func wants(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}

// keys are the authority's, as a thief would have them.
func keys(t testing.TB, c *cluster) (*x509.Certificate, ed25519.PrivateKey) {
	t.Helper()
	text, err := c.ca.Export()
	if err != nil {
		t.Fatal(err)
	}
	key, _ := pem.Decode(text)
	crt, _ := pem.Decode(c.ca.Certificate())
	signer, err := x509.ParsePKCS8PrivateKey(key.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := x509.ParseCertificate(crt.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return ca, signer.(ed25519.PrivateKey)
}

package trust_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rankfs/meta"
	"rankfs/meta/trust"
)

func TestAuthority(t *testing.T) {
	clock := newClock()
	dir := filepath.Join(t.TempDir(), "trust")
	_, err := trust.OpenAuthority(dir)
	wants(t, err, meta.ErrNotExist)
	made, err := trust.Create(dir, clock.now())
	if err != nil {
		t.Fatal(err)
	}
	again, err := trust.OpenAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	if made.Cluster() != again.Cluster() || made.Fingerprint() != again.Fingerprint() || !again.CanSign() {
		t.Error("opened is not what was made")
	}
	_, err = trust.Create(dir, clock.now())
	wants(t, err, meta.ErrExist)
	_, err = trust.Adopt(dir, made.Certificate(), made.Fingerprint())
	wants(t, err, meta.ErrExist)
	for name, mode := range map[string]fs.FileMode{".": 0o700, "ca.key": 0o600, "ca.crt": 0o644} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// A voter gets the key from another.
func TestExport(t *testing.T) {
	c, foreign := newCluster(t), newCluster(t)
	dir := t.TempDir()
	_, err := trust.Adopt(dir, c.ca.Certificate(), foreign.ca.Fingerprint())
	wants(t, err, meta.ErrDenied)
	other, err := trust.Adopt(dir, c.ca.Certificate(), c.ca.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Export()
	wants(t, err, meta.ErrNotExist)
	_, err = other.Sign(request(t, id(3)), trust.RoleNode, c.clock.now(), 0)
	wants(t, err, meta.ErrNotExist)

	theirs, err := foreign.ca.Export()
	if err != nil {
		t.Fatal(err)
	}
	wants(t, other.Import(theirs), meta.ErrInvalid)
	wants(t, other.Import(nil), meta.ErrCorrupt)
	key, err := c.ca.Export()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Import(key); err != nil {
		t.Fatal(err)
	}
	if other, err = trust.OpenAuthority(dir); err != nil || !other.CanSign() {
		t.Fatalf("may sign: %v, %v", other.CanSign(), err)
	}
	a, err := other.Sign(request(t, id(3)), trust.RoleNode, c.clock.now(), 0)
	if err != nil || len(a) == 0 {
		t.Fatal(err)
	}
	// A process that has the file open still, or reads the disk, finds nothing there.
	file, err := os.Open(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := errors.Join(other.Import(key), other.Forget(), other.Forget()); err != nil {
		t.Fatal(err)
	}
	if left, err := io.ReadAll(file); err != nil || len(left) != len(key) || bytes.ContainsFunc(left, func(r rune) bool { return r != 0 }) {
		t.Errorf("left of the key are %d bytes (%v)", len(bytes.Trim(left, "\x00")), err)
	}
	_, exporting := other.Export()
	_, signing := other.Sign(request(t, id(4)), trust.RoleNode, c.clock.now(), 0)
	wants(t, exporting, meta.ErrNotExist)
	wants(t, signing, meta.ErrNotExist)
	if other, err = trust.OpenAuthority(dir); err != nil || other.CanSign() {
		t.Errorf("may sign: %v, %v", other.CanSign(), err)
	}
}

func request(t testing.TB, node string) trust.Request {
	t.Helper()
	i, err := trust.OpenIdentity(t.TempDir(), node, "h")
	if err != nil {
		t.Fatal(err)
	}
	return requestOf(t, i)
}

func TestSignRefuses(t *testing.T) {
	c := newCluster(t)
	good := request(t, id(1))
	rows := []struct {
		name   string
		change func(*trust.Request)
		role   trust.Role
		after  time.Duration
		is     error
	}{
		{"no role", func(r *trust.Request) {}, "", 0, meta.ErrInvalid},
		{"a role with a slash", func(r *trust.Request) {}, "a/b", 0, meta.ErrInvalid},
		{"no node", func(r *trust.Request) { r.Node = "" }, trust.RoleNode, 0, meta.ErrInvalid},
		{"an id in upper case", func(r *trust.Request) { r.Node = "ABCDEF0123456789" }, trust.RoleNode, 0, meta.ErrInvalid},
		{"an id with a path", func(r *trust.Request) { r.Node = "../../0123456789" }, trust.RoleNode, 0, meta.ErrInvalid},
		{"no host", func(r *trust.Request) { r.Host = "" }, trust.RoleNode, 0, meta.ErrInvalid},
		{"a host of two lines", func(r *trust.Request) { r.Host = "a\nb" }, trust.RoleNode, 0, meta.ErrInvalid},
		{"a long host", func(r *trust.Request) { r.Host = strings.Repeat("a", 254) }, trust.RoleNode, 0, meta.ErrInvalid},
		{"half a key", func(r *trust.Request) { r.Key = r.Key[:16] }, trust.RoleNode, 0, meta.ErrInvalid},
		{"a clock before the cluster", func(r *trust.Request) {}, trust.RoleNode, -48 * time.Hour, meta.ErrDenied},
		{"an authority that has expired", func(r *trust.Request) {}, trust.RoleNode, 11 * 365 * 24 * time.Hour, meta.ErrDenied},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := good
			row.change(&r)
			_, err := c.ca.Sign(r, row.role, c.clock.now().Add(row.after), 0)
			wants(t, err, row.is)
		})
	}
}

// No certificate outlives the authority or begins before it.
func TestLeafWithinAuthority(t *testing.T) {
	c := newCluster(t)
	ca, _ := keys(t, c)
	for _, at := range []time.Time{ca.NotBefore, ca.NotBefore.Add(time.Minute), c.clock.now(), ca.NotAfter.Add(-time.Hour), ca.NotAfter} {
		i, err := trust.OpenIdentity(t.TempDir(), id(1), "h")
		if err != nil {
			t.Fatal(err)
		}
		text, err := c.ca.Sign(requestOf(t, i), trust.RoleNode, at, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Renew(text, c.ca, at); err != nil {
			t.Fatalf("at %v: %v", at, err)
		}
		if leaf := i.Leaf(); leaf.NotBefore.Before(ca.NotBefore) || leaf.NotAfter.After(ca.NotAfter) {
			t.Errorf("from %v until %v", leaf.NotBefore, leaf.NotAfter)
		}
	}
}

func TestRequestRefused(t *testing.T) {
	i, err := trust.OpenIdentity(t.TempDir(), id(1), "h")
	if err != nil {
		t.Fatal(err)
	}
	good, err := i.Request()
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p256, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, other)
	if err != nil {
		t.Fatal(err)
	}
	renamed := bytes.Replace(good, []byte(id(1)), []byte(id(2)), 1)
	rows := []struct {
		name string
		der  []byte
		is   error
	}{
		{"empty", nil, meta.ErrInvalid},
		{"truncated", good[:len(good)-1], meta.ErrInvalid},
		{"longer", append(bytes.Clone(good), 0), meta.ErrInvalid},
		{"huge", make([]byte, 1<<20), meta.ErrInvalid},
		{"of another kind of key", p256, meta.ErrInvalid},
		{"with another's id", renamed, meta.ErrDenied},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := trust.ParseRequest(row.der)
			wants(t, err, row.is)
		})
	}
}

// A certificate that is genuine, but of a cluster that is not ours, is refused
// even where the constraint on names would let it through.
func TestCheckLooksAtTheCluster(t *testing.T) {
	c := newCluster(t)
	leaf := c.identity(t, id(1)).Leaf()
	if name, err := c.ca.Check([]*x509.Certificate{leaf}, c.clock.now()); err != nil || name.Node != id(1) {
		t.Errorf("%v, %v", name, err)
	}
	_, err := trust.Mistaken(c.ca, "00000000000000cd").Check([]*x509.Certificate{leaf}, c.clock.now())
	wants(t, err, meta.ErrDenied)
	_, err = c.ca.Check(nil, c.clock.now())
	wants(t, err, meta.ErrDenied)
}

// Files that are not as they should be, and what is said of them.
func TestFiles(t *testing.T) {
	write := func(name, text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	cut := func(name string, to int64) func(string) error {
		return func(dir string) error { return os.Truncate(filepath.Join(dir, name), to) }
	}
	mode := func(name string, mode fs.FileMode) func(string) error {
		return func(dir string) error { return os.Chmod(filepath.Join(dir, name), mode) }
	}
	swap := func(a, b string) func(string) error {
		return func(dir string) error {
			text, err := os.ReadFile(filepath.Join(dir, a))
			return errors.Join(err, os.WriteFile(filepath.Join(dir, b), text, 0o600))
		}
	}
	remove := func(name string) func(string) error {
		return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
	}
	instead := func(name string, make func(string) error) func(string) error {
		return func(dir string) error {
			path := filepath.Join(dir, name)
			return errors.Join(os.Remove(path), make(path))
		}
	}
	directory := func(path string) error { return os.Mkdir(path, 0o700) }
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	outside := func(path string) error { return os.Symlink("/etc/passwd", path) }

	rows := []struct {
		name   string
		damage func(dir string) error
		is     error  // of OpenAuthority or OpenIdentity
		says   string // what to do
	}{
		{"key of the authority readable by others", mode("ca.key", 0o640), meta.ErrDenied, "chmod"},
		{"key of the node readable by others", mode("node.key", 0o604), meta.ErrDenied, "chmod"},
		{"certificate writable by others", mode("ca.crt", 0o666), meta.ErrDenied, "chmod"},
		{"directory writable by others", mode(".", 0o777), meta.ErrDenied, "chmod"},
		{"another user's", func(dir string) error { return os.Chown(filepath.Join(dir, "node.key"), 12345, 0) }, meta.ErrDenied, "chown"},
		{"another user's directory", func(dir string) error { return os.Chown(dir, 12345, 0) }, meta.ErrDenied, "chown"},
		{"certificate torn", cut("ca.crt", 100), meta.ErrCorrupt, "copy it from another node"},
		{"certificate empty", cut("ca.crt", 0), meta.ErrCorrupt, "copy it from another node"},
		{"key torn", cut("ca.key", 60), meta.ErrCorrupt, "another voter will send it"},
		{"node's certificate torn", cut("node.crt", 300), meta.ErrCorrupt, "join again"},
		{"node's key torn", cut("node.key", 10), meta.ErrCorrupt, "join again"},
		{"node's key empty", cut("node.key", 0), meta.ErrCorrupt, "join again"},
		{"key of another kind", swap("ca.crt", "ca.key"), meta.ErrCorrupt, "another voter"},
		{"key of the wrong thing", swap("node.key", "ca.key"), meta.ErrCorrupt, "another voter"},
		{"node's certificate of the authority", swap("ca.crt", "node.crt"), meta.ErrCorrupt, "join again"},
		{"authority of a node's certificate", swap("node.crt", "ca.crt"), meta.ErrInvalid, "copy it from another node"},
		{"node's certificate without its key", remove("node.key"), meta.ErrCorrupt, "join again"},
		{"no certificate", remove("ca.crt"), meta.ErrNotExist, "ca.crt"},
		{"garbage", write("ca.crt", strings.Repeat("-----BEGIN ", 500)), meta.ErrCorrupt, "copy it"},
		{"huge", write("ca.crt", strings.Repeat("x", 1<<20)), meta.ErrCorrupt, "bytes"},
		{"no directory but a file", func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) }, nil, "not a directory"},
		{"a directory", instead("node.crt", directory), meta.ErrCorrupt, "node.crt"},
		{"a pipe", instead("node.key", pipe), meta.ErrCorrupt, "node.key"},
		{"a link that leads out", instead("ca.crt", outside), nil, "ca.crt"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			found(t, dir, newClock())
			if err := row.damage(dir); err != nil {
				t.Fatal(err)
			}
			err := open(dir)
			if err == nil || row.is != nil && !errors.Is(err, row.is) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("error is %v, want %v and %q", err, row.is, row.says)
			}
			if err != nil && strings.Contains(err.Error(), "PRIVATE KEY-") {
				t.Errorf("%v has a key", err)
			}
		})
	}
}

// found founds a cluster in a directory, which can be opened then.
func found(t *testing.T, dir string, k *clock) {
	t.Helper()
	ca, err := trust.Create(dir, k.now())
	if err != nil {
		t.Fatal(err)
	}
	own, err := trust.OpenIdentity(dir, id(1), "h")
	if err != nil {
		t.Fatal(err)
	}
	(&cluster{ca, k}).renew(t, own)
	if err := open(dir); err != nil {
		t.Fatal(err)
	}
}

func open(dir string) error {
	if _, err := trust.OpenAuthority(dir); err != nil {
		return err
	}
	_, err := trust.OpenIdentity(dir, id(1), "h")
	return err
}

// A crash at any moment leaves nothing, or all of what was to be written.
func TestCrashes(t *testing.T) {
	clock := newClock()
	t.Run("before the authority was there", func(t *testing.T) {
		dir := t.TempDir()
		if _, err := trust.Create(dir, clock.now()); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "ca.crt")); err != nil {
			t.Fatal(err)
		}
		if _, err := trust.Create(dir, clock.now()); err != nil {
			t.Error(err)
		}
	})
	t.Run("and then joined another", func(t *testing.T) {
		dir, other := t.TempDir(), newCluster(t)
		if _, err := trust.Create(dir, clock.now()); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "ca.crt")); err != nil {
			t.Fatal(err)
		}
		a, err := trust.Adopt(dir, other.ca.Certificate(), other.ca.Fingerprint())
		if err != nil || a.CanSign() {
			t.Error(err)
		}
	})
	t.Run("in the middle of a file", func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{"ca.key.new", "ca.crt.new", "node.key.new", "node.crt.new"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("-----BEGIN"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		found(t, dir, clock)
		if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) != 0 {
			t.Errorf("%v are left", left)
		}
	})
}

func TestName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringMatching("[0-9a-f]{16}")
		want := trust.Name{Cluster: id.Draw(t, "cluster"), Role: trust.Role(rapid.StringMatching("[a-z]{1,16}").Draw(t, "role")), Node: id.Draw(t, "node")}
		if got, err := trust.ParseName(want.String()); got != want || err != nil {
			t.Fatalf("%v is %v, %v", want, got, err)
		}
	})
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"", "rankfs://", "rankfs://0123456789abcdef/node/0123456789abcdef", "rankfs://0123456789abcdef/node/0123456789abcdef?",
		"rankfs://0123456789abcdef/node/../0123456789abcdef", "RANKFS://0123456789abcdef//0123456789abcdef"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := trust.ParseName(s)
		if err == nil && name.String() != s {
			t.Errorf("%q is %q", s, name)
		}
		if err != nil && !errors.Is(err, meta.ErrInvalid) {
			t.Error(err)
		}
	})
}

// What a certificate says of its holder, also one that a stranger made.
func FuzzCertificate(f *testing.F) {
	clock := newClock()
	ca, err := trust.Create(f.TempDir(), clock.now())
	if err != nil {
		f.Fatal(err)
	}
	c := &cluster{ca, clock}
	own := c.identity(f, id(1)).Leaf()
	root, _ := keys(f, c)
	f.Add(own.Raw)
	f.Add(root.Raw)
	f.Add(bytes.Replace(own.Raw, []byte("rankfs://"), []byte("rankfs:/?"), 1))
	f.Fuzz(func(t *testing.T, der []byte) {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return
		}
		if name, err := trust.NameIn(cert); err == nil {
			if again, err := trust.ParseName(name.String()); err != nil || again != name {
				t.Errorf("%v is %v, %v", name, again, err)
			}
		}
		if name, err := ca.Check([]*x509.Certificate{cert}, clock.now()); err == nil && name.Node != id(1) {
			t.Errorf("%v was believed", name)
		}
	})
}

func FuzzRequest(f *testing.F) {
	i, err := trust.OpenIdentity(f.TempDir(), id(1), "host-1.example")
	if err != nil {
		f.Fatal(err)
	}
	der, err := i.Request()
	if err != nil {
		f.Fatal(err)
	}
	c := newCluster(f)
	f.Add(der)
	f.Add(der[:len(der)/2])
	f.Fuzz(func(t *testing.T, der []byte) {
		r, err := trust.ParseRequest(der)
		if err != nil {
			return
		}
		if _, err := c.ca.Sign(r, trust.RoleNode, c.clock.now(), 0); err != nil {
			t.Errorf("%+v cannot be signed: %v", r, err)
		}
	})
}

// A certificate of the authority comes from a peer when a node joins.
func FuzzAdopt(f *testing.F) {
	c := newCluster(f)
	f.Add(c.ca.Certificate())
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if a, err := trust.Adopt(dir, text, c.ca.Fingerprint()); err == nil && a.Cluster() != c.ca.Cluster() {
			t.Errorf("adopted cluster %s", a.Cluster())
		}
	})
}

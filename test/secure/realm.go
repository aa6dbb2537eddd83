package secure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rankfs/test/eventually"
)

// Name is that of every realm.
const Name = "RANKFS.TEST"

// A Realm is a KDC. It knows alice and the services of an HDFS.
type Realm struct {
	t          testing.TB
	dir        string
	kdc, name  string // HOST:PORT of the KDC and of the namenode
	data       string // HOST:PORT of the datanode
	protection string // that it asks of who writes, or none
	formatted  bool
}

// New starts one. alice's key is in alice.keytab, those of services are in
// nn.keytab.
func New(t testing.TB) *Realm {
	t.Helper()
	r := &Realm{t: t, dir: t.TempDir(), kdc: FreePort(t), name: FreePort(t)}
	r.Krb5Conf("krb5.conf", r.kdc, "")
	r.File("kdc.conf", fmt.Sprintf(`
[kdcdefaults]
	kdc_listen = %[1]s
	kdc_tcp_listen = %[1]s
[logging]
	kdc = FILE:%[3]s/kdc.log
[realms]
	%[2]s = {
		database_name = %[3]s/principals
		key_stash_file = %[3]s/stash
		max_life = 10h
		max_renewable_life = 7d
		supported_enctypes = aes256-cts-hmac-sha1-96:normal aes256-cts-hmac-sha384-192:normal
	}
`, r.kdc, Name, r.dir))
	r.Run("kdb5_util", "create", "-s", "-P", "secret", "-r", Name)
	const services = "nn/localhost dn/localhost HTTP/localhost"
	for _, p := range strings.Fields(services + " alice") {
		r.Run("kadmin.local", "-q", "addprinc -randkey "+p)
	}
	r.Run("kadmin.local", "-q", "ktadd -k "+r.Path("nn.keytab")+" "+services)
	r.Run("kadmin.local", "-q", "ktadd -k "+r.Path("alice.keytab")+" alice")
	r.Start("krb5kdc", "-n")
	r.awaitKDC()
	return r
}

// awaitKDC waits until the KDC takes calls.
func (r *Realm) awaitKDC() {
	r.t.Helper()
	eventually.Done(r.t, 3*time.Minute, "the KDC takes calls", func() error {
		c, err := net.Dial("tcp", r.kdc)
		if err == nil {
			c.Close()
		}
		return err
	})
}

// Krb5Conf writes a krb5.conf for a KDC, perhaps for keys of one type alone.
func (r *Realm) Krb5Conf(file, kdc, types string) {
	r.t.Helper()
	conf := "[libdefaults]\n\tdefault_realm = " + Name + "\n\tdns_lookup_kdc = false\n\trdns = false\n\tudp_preference_limit = 1\n\trenew_lifetime = 7d\n"
	if types != "" {
		conf += "\tdefault_tkt_enctypes = " + types + "\n\tdefault_tgs_enctypes = " + types + "\n\tpermitted_enctypes = " + types + "\n"
	}
	r.File(file, conf+"[realms]\n\t"+Name+" = {\n\t\tkdc = "+kdc+"\n\t}\n")
}

// KDC is the address of the one that runs.
func (r *Realm) KDC() string { return r.kdc }

// FreePort is an address on which no process listens. Its port is none of those that the
// kernel gives to connections, of which one could have it before it is listened on.
func FreePort(t testing.TB) string {
	t.Helper()
	for {
		port := 20000 + rand.IntN(12000)
		if _, given := freePorts.LoadOrStore(port, true); given {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		return fmt.Sprint("localhost:", port)
	}
}

var freePorts sync.Map // that were given, to whichever test

// Path is that of a file of the realm.
func (r *Realm) Path(name string) string { return filepath.Join(r.dir, name) }

// File writes one.
func (r *Realm) File(name, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.Path(name)), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.Path(name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *Realm) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), "KRB5_CONFIG="+r.Path("krb5.conf"), "KRB5_KDC_PROFILE="+r.Path("kdc.conf"), "KRB5CCNAME="+r.Path("cache"))
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// Run runs a program of Kerberos, or any other, as a user of the realm.
func (r *Realm) Run(name string, args ...string) {
	r.t.Helper()
	if err := r.Try(name, args...); err != nil {
		r.t.Fatal(err)
	}
}

// Try is Run that may go wrong.
func (r *Realm) Try(name string, args ...string) error {
	if out, err := r.command(r.t.Context(), name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return nil
}

// Start runs a program until it is stopped or the test ends.
func (r *Realm) Start(name string, args ...string) (stop func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := r.command(ctx, name, args...)
	log, err := os.CreateTemp(r.dir, filepath.Base(name)+"-*.log")
	if err != nil {
		r.t.Fatal(err)
	}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	stop = func() {
		cancel()
		c.Wait()
	}
	r.t.Cleanup(func() {
		stop()
		log.Close()
		if b, err := os.ReadFile(log.Name()); err == nil && r.t.Failed() {
			r.t.Logf("%s said last: %s", name, b[max(0, len(b)-4000):])
		}
	})
	return stop
}

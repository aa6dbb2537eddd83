package namenode_test

import (
	"context"
	"encoding/xml"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
	"rankfs/test/hadoop"
)

// A realm is a real KDC and a real namenode that demands Kerberos and offers
// every protection. Both listen on this host only and end with the test.
type realm struct {
	t    *testing.T
	dir  string
	kdc  string // its address
	name string // HOST:PORT of the namenode
}

const realmName = "RANKFS.TEST"

// newRealm starts one. The namenode has its own keytab; alice has one, and may
// act for carol.
func newRealm(t *testing.T) *realm {
	r := &realm{t: t, dir: t.TempDir(), kdc: freePort(t), name: freePort(t)}
	r.file("krb5.conf", krb5Conf(r.kdc, ""))
	r.file("sha2.conf", krb5Conf(r.kdc, "aes256-cts-hmac-sha384-192"))
	r.file("kdc.conf", fmt.Sprintf(`
[kdcdefaults]
	kdc_listen = %[1]s
	kdc_tcp_listen = %[1]s
[realms]
	%[2]s = {
		database_name = %[3]s/principals
		key_stash_file = %[3]s/stash
		max_life = 10h
		max_renewable_life = 7d
		supported_enctypes = aes256-cts-hmac-sha1-96:normal aes256-cts-hmac-sha384-192:normal
	}
`, r.kdc, realmName, r.dir))
	r.run("kdb5_util", "create", "-s", "-P", "secret", "-r", realmName)
	for _, p := range []string{"nn/localhost", "HTTP/localhost", "alice"} {
		r.run("kadmin.local", "-q", "addprinc -randkey "+p)
	}
	r.run("kadmin.local", "-q", "ktadd -k "+r.path("nn.keytab")+" nn/localhost HTTP/localhost")
	r.run("kadmin.local", "-q", "ktadd -k "+r.path("alice.keytab")+" alice")
	r.start("krb5kdc", "-n")
	r.startNamenode()
	return r
}

func krb5Conf(kdc, types string) string {
	conf := "[libdefaults]\n\tdefault_realm = " + realmName + "\n\tdns_lookup_kdc = false\n\trdns = false\n\tudp_preference_limit = 1\n\trenew_lifetime = 7d\n"
	if types != "" {
		conf += "\tdefault_tkt_enctypes = " + types + "\n\tdefault_tgs_enctypes = " + types + "\n\tpermitted_enctypes = " + types + "\n"
	}
	return conf + "[realms]\n\t" + realmName + " = {\n\t\tkdc = " + kdc + "\n\t}\n"
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1)
}

func (r *realm) path(name string) string { return filepath.Join(r.dir, name) }

func (r *realm) file(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(r.path(name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *realm) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), "KRB5_CONFIG="+r.path("krb5.conf"), "KRB5_KDC_PROFILE="+r.path("kdc.conf"), "KRB5CCNAME="+r.path("cache"))
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

func (r *realm) run(name string, args ...string) {
	r.t.Helper()
	if out, err := r.command(r.t.Context(), name, args...).CombinedOutput(); err != nil {
		r.t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

// start runs a program until the test ends.
func (r *realm) start(name string, args ...string) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := r.command(ctx, name, args...)
	log, err := os.Create(r.path(filepath.Base(name) + ".log"))
	if err != nil {
		r.t.Fatal(err)
	}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		cancel()
		c.Wait()
		log.Close()
		if b, err := os.ReadFile(log.Name()); err == nil && r.t.Failed() {
			r.t.Logf("%s said last: %s", name, b[max(0, len(b)-4000):])
		}
	})
}

func (r *realm) startNamenode() {
	r.t.Helper()
	home, err := hadoop.Prepare(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.Mkdir(r.path("conf"), 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.settings("conf/core-site.xml", map[string]string{
		"fs.defaultFS":                   "hdfs://" + r.name,
		"hadoop.tmp.dir":                 r.path("tmp"),
		"hadoop.security.authentication": "kerberos",
		"hadoop.security.authorization":  "true",
		"hadoop.rpc.protection":          "authentication,integrity,privacy",
		"hadoop.proxyuser.alice.hosts":   "*",
		"hadoop.proxyuser.alice.users":   "carol",
	})
	r.settings("conf/hdfs-site.xml", map[string]string{
		"dfs.namenode.http-address":                 freePort(r.t),
		"dfs.block.access.token.enable":             "true",
		"dfs.namenode.kerberos.principal":           "nn/_HOST@" + realmName,
		"dfs.namenode.keytab.file":                  r.path("nn.keytab"),
		"dfs.web.authentication.kerberos.principal": "HTTP/_HOST@" + realmName,
		"dfs.web.authentication.kerberos.keytab":    r.path("nn.keytab"),
	})
	java := func(class string, args ...string) []string {
		options := append([]string{"-Djava.security.krb5.conf=" + r.path("krb5.conf")}, hadoop.DaemonOptions...)
		return home.Line(r.path("conf"), options, class, args...)
	}
	const class = "org.apache.hadoop.hdfs.server.namenode.NameNode"
	format := java(class, "-format", "-force", "-nonInteractive")
	r.run(format[0], format[1:]...)
	serve := java(class)
	r.start(serve[0], serve[1:]...)

	var names []string
	for i := range entries {
		names = append(names, fmt.Sprintf("/d/%04d", i))
	}
	r.run("kinit", "-kt", r.path("nn.keytab"), "nn/localhost")
	r.await()
	fill := java("org.apache.hadoop.fs.FsShell", append([]string{"-mkdir", "-p"}, names...)...)
	r.run(fill[0], fill[1:]...)
	private := java("org.apache.hadoop.fs.FsShell", "-chmod", "700", "/d/0000")
	r.run(private[0], private[1:]...)
}

// entries of /d are more than a page of a listing.
const entries = 1500

func (r *realm) settings(name string, values map[string]string) {
	type property struct {
		Name  string `xml:"name"`
		Value string `xml:"value"`
	}
	var c struct {
		XMLName    xml.Name   `xml:"configuration"`
		Properties []property `xml:"property"`
	}
	for k, v := range values {
		c.Properties = append(c.Properties, property{k, v})
	}
	b, err := xml.Marshal(c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.file(name, string(b))
}

// await waits until the namenode serves.
func (r *realm) await() {
	r.t.Helper()
	c := r.client(r.t, func(c *namenode.Config) { c.Kerberos.Cache = r.path("cache") })
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		_, err := c.Stat(r.t.Context(), "/")
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatal(err)
		}
	}
}

// client is one that logs in as alice with her keytab, unless changed.
func (r *realm) client(t *testing.T, change func(*namenode.Config)) *namenode.Client {
	t.Helper()
	config, err := namenode.FromConf(r.path("conf"), "")
	if err != nil {
		t.Fatal(err)
	}
	config.Kerberos.Conf = r.path("krb5.conf")
	if change != nil {
		change(&config)
	}
	if k := config.Kerberos; k != nil && k.Cache == "" && k.Keytab == "" {
		k.Keytab, k.Principal = r.path("alice.keytab"), "alice"
	}
	c, err := namenode.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestKerberos(t *testing.T) {
	r := newRealm(t)
	t.Run("protections", r.protections)
	t.Run("refusals", r.refusals)
	t.Run("cache", r.cache)
	t.Run("renewal", r.renewal)
}

func (r *realm) protections(t *testing.T) {
	rows := []struct {
		name   string
		change func(*namenode.Config)
	}{
		{"best", func(c *namenode.Config) { c.Kerberos.Protection = nil }},
		{"authentication", func(c *namenode.Config) { c.Kerberos.Protection = []string{"authentication"} }},
		{"integrity", func(c *namenode.Config) { c.Kerberos.Protection = []string{"integrity"} }},
		{"privacy", func(c *namenode.Config) { c.Kerberos.Protection = []string{"privacy"} }},
		{"privacy, SHA-2", func(c *namenode.Config) {
			c.Kerberos.Protection, c.Kerberos.Conf = []string{"privacy"}, r.path("sha2.conf")
		}},
		{"integrity, SHA-2", func(c *namenode.Config) {
			c.Kerberos.Protection, c.Kerberos.Conf = []string{"integrity"}, r.path("sha2.conf")
		}},
		{"for another", func(c *namenode.Config) { c.ActFor = "carol" }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			c := r.client(t, row.change)
			n := 0
			err := c.List(t.Context(), "/d", true, func(st namenode.Status) error {
				if st.Name != fmt.Sprintf("%04d", n) || !st.Dir {
					return fmt.Errorf("entry %d is %+v", n, st)
				}
				n++
				return nil
			})
			if err != nil || n != entries {
				t.Errorf("%d entries, %v", n, err)
			}
		})
	}
}

func (r *realm) refusals(t *testing.T) {
	rows := []struct {
		name   string
		change func(*namenode.Config)
		says   []string
		is     error
	}{
		{"permission", nil, []string{`"alice@` + realmName + `"`, "setfacl"}, syscall.EACCES},
		{"no Kerberos", func(c *namenode.Config) { c.Kerberos = nil }, []string{"wants Kerberos"}, syscall.EACCES},
		{"for one he may not", func(c *namenode.Config) { c.ActFor = "dave" }, []string{"not allowed to impersonate dave"}, syscall.EACCES},
		{"unknown principal", func(c *namenode.Config) { c.Kerberos.Keytab, c.Kerberos.Principal = r.path("alice.keytab"), "bob" },
			[]string{"CLIENT_NOT_FOUND", "kinit -kt " + r.path("alice.keytab") + " bob"}, syscall.EACCES},
		{"no keytab", func(c *namenode.Config) { c.Kerberos.Keytab, c.Kerberos.Principal = r.path("none"), "alice" },
			[]string{"no such file"}, syscall.EACCES},
		{"broken keytab", func(c *namenode.Config) { c.Kerberos.Keytab, c.Kerberos.Principal = r.path("krb5.conf"), "alice" },
			[]string{"kerberos: "}, syscall.EACCES},
		{"no cache", func(c *namenode.Config) { c.Kerberos.Cache = r.path("none") }, []string{"run kinit"}, syscall.EACCES},
		{"broken cache", func(c *namenode.Config) { c.Kerberos.Cache = r.path("broken") }, []string{"make it anew"}, syscall.EACCES},
		{"other service", func(c *namenode.Config) { c.Kerberos.Service = "xx/_HOST@" + realmName },
			[]string{`principal "xx/localhost" is not valid`, `calls itself "nn/localhost"`}, meta.ErrInvalid},
		{"address by number", func(c *namenode.Config) {
			c.Addresses[0] = strings.Replace(c.Addresses[0], "localhost", "127.0.0.1", 1)
		},
			[]string{"with Kerberos give the host's name"}, meta.ErrInvalid},
		{"no KDC", func(c *namenode.Config) { c.Kerberos.Conf = r.path("nokdc.conf") },
			[]string{"does the KDC that", "run?"}, namenode.ErrUnreachable},
	}
	r.file("broken", "\x05\x04\x00\x0c\x00\x01\xff\xff")
	r.file("nokdc.conf", krb5Conf(freePort(t), ""))
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			err := r.client(t, row.change).List(t.Context(), "/d/0000", false, func(namenode.Status) error { return nil })
			holds(t, err, row.says, []error{row.is})
		})
	}
}

// A cache that is filled after it was found missing is read then.
func (r *realm) cache(t *testing.T) {
	c := r.client(t, func(c *namenode.Config) { c.Kerberos.Cache = r.path("later") })
	_, err := c.Stat(t.Context(), "/d")
	holds(t, err, []string{"run kinit"}, []error{syscall.EACCES})
	r.run("kinit", "-c", r.path("later"), "-kt", r.path("alice.keytab"), "alice")
	if _, err := c.Stat(t.Context(), "/d"); err != nil {
		t.Error(err)
	}
}

// A ticket is renewed before it ends, and what comes of it is good for new
// connections.
func (r *realm) renewal(t *testing.T) {
	r.run("kinit", "-c", r.path("short"), "-l", "10m", "-r", "1h", "-kt", r.path("alice.keytab"), "alice")
	c := r.client(t, func(c *namenode.Config) { c.Kerberos.Cache = r.path("short") })
	if _, err := c.Stat(t.Context(), "/d"); err != nil {
		t.Fatal(err)
	}
	first := c.TicketEnd()
	for deadline := time.Now().Add(time.Minute); !c.TicketEnd().After(first); time.Sleep(100 * time.Millisecond) { // seconds are all it counts
		if err := c.Renew(); err != nil || time.Now().After(deadline) {
			t.Fatalf("the ticket ends at %v: %v", c.TicketEnd(), err)
		}
	}
	c.Disconnect()
	if _, err := c.Stat(t.Context(), "/d"); err != nil {
		t.Error(err)
	}
}

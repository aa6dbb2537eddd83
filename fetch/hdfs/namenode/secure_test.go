package namenode_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
	"rankfs/test/eventually"
	"rankfs/test/secure"
)

// A realm has a real namenode that demands Kerberos and offers every
// protection. alice may act for carol.
type realm struct{ *secure.Realm }

// entries of /d are more than a page of a listing.
const entries = 1500

func newRealm(t *testing.T) realm {
	r := realm{secure.New(t)}
	r.Krb5Conf("sha2.conf", r.KDC(), "aes256-cts-hmac-sha384-192")
	r.Configure(nil)
	r.NameNode()
	c := r.HDFS()
	for i := range entries {
		if err := c.MkdirAll(fmt.Sprintf("/d/%04d", i), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Chmod("/d/0000", 0o700); err != nil {
		t.Fatal(err)
	}
	return r
}

// client is one that logs in as alice with her keytab, unless changed, by RPC alone.
func (r realm) client(t *testing.T, change func(*namenode.Config)) *namenode.Client {
	t.Helper()
	config, err := namenode.FromConf(r.Path("conf"), "")
	if err != nil {
		t.Fatal(err)
	}
	config.Kerberos.Conf, config.Web = r.Path("krb5.conf"), nil
	if change != nil {
		change(&config)
	}
	if k := config.Kerberos; k != nil && k.Cache == "" && k.Keytab == "" {
		k.Keytab, k.Principal = r.Path("alice.keytab"), "alice"
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

func (r realm) protections(t *testing.T) {
	rows := []struct {
		name   string
		change func(*namenode.Config)
	}{
		{"best", func(c *namenode.Config) { c.Kerberos.Protection = nil }},
		{"authentication", func(c *namenode.Config) { c.Kerberos.Protection = []string{"authentication"} }},
		{"integrity", func(c *namenode.Config) { c.Kerberos.Protection = []string{"integrity"} }},
		{"privacy", func(c *namenode.Config) { c.Kerberos.Protection = []string{"privacy"} }},
		{"privacy, SHA-2", func(c *namenode.Config) {
			c.Kerberos.Protection, c.Kerberos.Conf = []string{"privacy"}, r.Path("sha2.conf")
		}},
		{"integrity, SHA-2", func(c *namenode.Config) {
			c.Kerberos.Protection, c.Kerberos.Conf = []string{"integrity"}, r.Path("sha2.conf")
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

func (r realm) refusals(t *testing.T) {
	rows := []struct {
		name   string
		change func(*namenode.Config)
		says   []string
		is     error
	}{
		{"permission", nil, []string{`"alice@` + secure.Name + `"`, "setfacl"}, syscall.EACCES},
		{"no Kerberos", func(c *namenode.Config) { c.Kerberos = nil }, []string{"wants Kerberos"}, syscall.EACCES},
		{"for one he may not", func(c *namenode.Config) { c.ActFor = "dave" }, []string{"not allowed to impersonate dave"}, syscall.EACCES},
		{"unknown principal", func(c *namenode.Config) { c.Kerberos.Keytab, c.Kerberos.Principal = r.Path("alice.keytab"), "bob" },
			[]string{"CLIENT_NOT_FOUND", "kinit -kt " + r.Path("alice.keytab") + " bob"}, syscall.EACCES},
		{"no keytab", func(c *namenode.Config) { c.Kerberos.Keytab, c.Kerberos.Principal = r.Path("none"), "alice" },
			[]string{"no such file"}, syscall.EACCES},
		{"broken keytab", func(c *namenode.Config) { c.Kerberos.Keytab, c.Kerberos.Principal = r.Path("krb5.conf"), "alice" },
			[]string{"kerberos: "}, syscall.EACCES},
		{"no cache", func(c *namenode.Config) { c.Kerberos.Cache = r.Path("none") }, []string{"run kinit"}, syscall.EACCES},
		{"broken cache", func(c *namenode.Config) { c.Kerberos.Cache = r.Path("broken") }, []string{"make it anew"}, syscall.EACCES},
		{"other service", func(c *namenode.Config) { c.Kerberos.Service = "xx/_HOST@" + secure.Name },
			[]string{`principal "xx/localhost" is not valid`, `calls itself "nn/localhost"`}, meta.ErrInvalid},
		{"address by number", func(c *namenode.Config) {
			c.Addresses[0] = strings.Replace(c.Addresses[0], "localhost", "127.0.0.1", 1)
		},
			[]string{"with Kerberos give the host's name"}, meta.ErrInvalid},
		{"no KDC", func(c *namenode.Config) { c.Kerberos.Conf = r.Path("nokdc.conf") },
			[]string{"does the KDC that", "run?"}, namenode.ErrUnreachable},
	}
	r.File("broken", "\x05\x04\x00\x0c\x00\x01\xff\xff")
	r.Krb5Conf("nokdc.conf", secure.FreePort(t), "")
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			err := r.client(t, row.change).List(t.Context(), "/d/0000", false, func(namenode.Status) error { return nil })
			holds(t, err, row.says, []error{row.is})
			if errors.Is(err, meta.ErrNotExist) || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v counts as a path that HDFS does not have", err)
			}
		})
	}
}

// A cache that is filled after it was found missing is read then.
func (r realm) cache(t *testing.T) {
	c := r.client(t, func(c *namenode.Config) { c.Kerberos.Cache = r.Path("later") })
	_, err := c.Stat(t.Context(), "/d")
	holds(t, err, []string{"run kinit"}, []error{syscall.EACCES})
	holds(t, c.NoTicket(), []string{"run kinit"}, []error{syscall.EACCES})
	r.Run("kinit", "-c", r.Path("later"), "-kt", r.Path("alice.keytab"), "alice")
	if _, err := c.Stat(t.Context(), "/d"); err != nil || c.NoTicket() != nil {
		t.Error(err, c.NoTicket())
	}
}

// A ticket is renewed before it ends, and what comes of it is good for new
// connections.
func (r realm) renewal(t *testing.T) {
	r.Run("kinit", "-c", r.Path("short"), "-l", "10m", "-r", "1h", "-kt", r.Path("alice.keytab"), "alice")
	c := r.client(t, func(c *namenode.Config) { c.Kerberos.Cache = r.Path("short") })
	if _, err := c.Stat(t.Context(), "/d"); err != nil {
		t.Fatal(err)
	}
	first := c.TicketEnd()
	eventually.True(t, "a ticket that ends later", func() bool { // seconds are all it counts
		if err := c.Renew(); err != nil {
			t.Fatalf("the ticket ends at %v: %v", c.TicketEnd(), err)
		}
		return c.TicketEnd().After(first)
	})
	c.Disconnect()
	if _, err := c.Stat(t.Context(), "/d"); err != nil {
		t.Error(err)
	}
}

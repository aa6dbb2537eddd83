package secure_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
	"rankfs/test/secure"
	"rankfs/test/sourcetest"
)

// odd are names that an address does not have as they are.
var odd = []string{"a b", "a+b", "a%20b", "a;b=c", "a&b", "#a", "a?b", "ä", "日本", `"a"`, "a,b", "a'b", "[a]", `a\b`, "~", "..."}

const (
	webHTTP  = "dfs.namenode.http-address"
	webHTTPS = "dfs.namenode.https-address"
	policy   = "dfs.http.policy"
)

// A node that cannot reach the namenode by RPC gets the same by WebHDFS, over HTTP or
// HTTPS: the files, where their blocks are, and the tokens that datanodes want to see.
func TestWebHDFS(t *testing.T) {
	r := secure.New(t)
	settings := secure.Settings{
		policy: "HTTP_AND_HTTPS", webHTTP: secure.FreePort(t), webHTTPS: secure.FreePort(t),
		"dfs.datanode.https.address": secure.FreePort(t),
		protects:                     "privacy",
		"dfs.ls.limit":               "5",
	}
	r.Configure(settings)
	roots := r.Certificate()
	r.NameNode()
	r.DataNode()
	h := fill(r)
	for _, name := range odd {
		r.File("odd/"+name, name)
	}
	r.Put(block, r.Path("odd"), "/odd")
	c := r.HDFS()
	if err := errors.Join(c.MkdirAll("/shut/in", 0o755), c.Chmod("/shut", 0o700), c.Chmod("/odd", 0o1755)); err != nil {
		t.Fatal(err)
	}

	// far leads to WebHDFS, and for RPC to a port at which no process listens.
	far := func(t *testing.T, way string) string {
		return h.Conf("far", secure.Settings{
			"dfs.ha.namenodes.far": "x", "dfs.namenode.rpc-address.far.x": secure.FreePort(t),
			webHTTP + ".far.x": settings[webHTTP], webHTTPS + ".far.x": settings[webHTTPS],
			policy: way, protects: settings[protects],
		})
	}
	trusting := func(c *namenode.Config) { c.Roots = roots }
	rpc := h.asks(t, r.Path("conf"), h.Address(), nil)
	for _, row := range []struct {
		name, policy, url string
		change            func(*namenode.Config)
	}{
		{"HTTP", "HTTP_ONLY", "http://" + settings[webHTTP], nil},
		{"HTTPS", "HTTPS_ONLY", "https://" + settings[webHTTPS], trusting},
		{"HTTPS where both are, and RPC is guarded", "HTTP_AND_HTTPS", "https://" + settings[webHTTPS], func(c *namenode.Config) {
			trusting(c)
			c.Kerberos.Protection = []string{"privacy"}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			web := h.asks(t, far(t, row.policy), "far", row.change)
			alike(t, rpc, web)
			if web.Web() != row.url {
				t.Errorf("asked by %q, not by %q", web.Web(), row.url)
			}
		})
	}
	t.Run("refusals", func(t *testing.T) {
		for _, row := range []struct {
			name, policy string
			change       func(*namenode.Config)
			says         string
			is           error
		}{
			{"for one he may not", "HTTP_ONLY", func(c *namenode.Config) { c.ActFor = "dave" }, "not allowed to impersonate dave", syscall.EACCES},
			{"no ticket", "HTTP_ONLY", func(c *namenode.Config) {
				c.Kerberos.Keytab, c.Kerberos.Principal, c.Kerberos.Cache = "", "", h.Path("none")
			},
				"run kinit", meta.ErrBusy},
			{"no Kerberos", "HTTP_ONLY", func(c *namenode.Config) { c.Kerberos = nil }, "refuses who we are", namenode.ErrUnreachable},
			{"an unknown certificate", "HTTPS_ONLY", nil, "certificate", namenode.ErrUnreachable},
			{"HTTP for a guarded RPC", "HTTP_ONLY", func(c *namenode.Config) { c.Kerberos.Protection = []string{"integrity"} }, "give HTTPS", meta.ErrInvalid},
		} {
			t.Run(row.name, func(t *testing.T) {
				web, err := h.client(t, far(t, row.policy), "far", row.change)
				if err == nil {
					_, err = web.Stat(t.Context(), "/")
				}
				if !errors.Is(err, row.is) || !contains(err, row.says) {
					t.Errorf("got %v", err)
				}
			})
		}
	})
	t.Run("for another", func(t *testing.T) {
		web := h.asks(t, far(t, "HTTP_ONLY"), "far", func(c *namenode.Config) { c.ActFor = "carol" })
		_, err := web.Stat(t.Context(), "/shut/in")
		if !errors.Is(err, syscall.EACCES) || !contains(err, `user "carol"`) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		k := h.clusters(t, far(t, "HTTP_ONLY"), nil)
		d := sourcetest.Attach(t, sourcetest.Fixture{
			Open: func() (fetch.Source, error) { return fetch.Open("hdfs://far/data?as=files", &fetch.Env{HDFS: k}) },
		})
		if err := h.read(t, d); err != nil {
			t.Error(err)
		}
		if ways := k.Web(); !slices.Equal(ways, []hdfs.Way{{Authority: "far", URL: "http://" + settings[webHTTP]}}) {
			t.Errorf("asked by %v", ways)
		}
	})
}

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// client is one of an authority that logs in as alice.
func (h hdfsWith) client(t *testing.T, conf, authority string, change func(*namenode.Config)) (*namenode.Client, error) {
	t.Helper()
	config, err := namenode.FromConf(conf, authority)
	if err != nil {
		t.Fatal(err)
	}
	k := config.Kerberos
	k.Conf, k.Keytab, k.Principal = h.Path("krb5.conf"), h.Path("alice.keytab"), "alice"
	if change != nil {
		change(&config)
	}
	c, err := namenode.New(config)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// asks is a client that there is.
func (h hdfsWith) asks(t *testing.T, conf, authority string, change func(*namenode.Config)) *namenode.Client {
	t.Helper()
	c, err := h.client(t, conf, authority, change)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// alike compares all that two clients are told.
func alike(t *testing.T, rpc, web *namenode.Client) {
	t.Helper()
	seen := 0
	same := func(what string, ask func(*namenode.Client) (any, error)) {
		t.Helper()
		want, wrong := ask(rpc)
		got, err := ask(web)
		if kind(err) != kind(wrong) {
			t.Errorf("%s: by RPC %v, by WebHDFS %v", what, wrong, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: by RPC\n%+v\nby WebHDFS\n%+v", what, want, got)
		}
	}
	for _, path := range []string{"/", "/data", "/data/11", "/odd", "/odd/a+b", "/shut", "/shut/in", "/none", "/data/11/x"} {
		same("status of "+path, func(c *namenode.Client) (any, error) { return c.Stat(t.Context(), path) })
		for _, located := range []bool{false, true} {
			same(fmt.Sprintf("list of %s, located: %v", path, located), func(c *namenode.Client) (any, error) {
				var all []namenode.Status
				err := c.List(t.Context(), path, located, func(st namenode.Status) error {
					tokenless(t, st.Blocks, false)
					all = append(all, st)
					return nil
				})
				seen += len(all)
				return all, err
			})
		}
		for _, at := range [][2]int64{{0, 1 << 40}, {block, 1}, {block - 1, 2}, {3 * block, 5}} {
			same(fmt.Sprintf("where %s is, from %d on", path, at[0]), func(c *namenode.Client) (any, error) {
				b, err := c.Locate(t.Context(), path, at[0], at[1])
				tokenless(t, b, true)
				return b, err
			})
		}
	}
	if least := 4 * (len(odd) + len(sizes)); seen < least {
		t.Errorf("%d entries, want at least %d", seen, least)
	}
	same("whether data is encrypted", func(c *namenode.Client) (any, error) { return c.EncryptsData(t.Context()) })
}

// tokenless leaves the messages out, which have tokens that are made anew for
// each question, or none.
func tokenless(t *testing.T, b *namenode.Blocks, due bool) {
	t.Helper()
	if b == nil {
		return
	}
	for i := range b.Blocks {
		if due && proto.Size(b.Blocks[i].Message) < 100 {
			t.Error("a block without a token")
		}
		b.Blocks[i].Message = nil
	}
}

// kind is what callers branch on.
func kind(err error) error {
	for _, is := range []error{meta.ErrNotExist, syscall.EACCES, meta.ErrInvalid} {
		if errors.Is(err, is) {
			return is
		}
	}
	return err
}

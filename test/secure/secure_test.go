package secure_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/fetch/hdfs/datanode"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
	"rankfs/test/eventually"
	"rankfs/test/secure"
	"rankfs/test/sourcetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("os/exec.(*Cmd).Wait"))
}

const (
	block    = 256 << 10
	protects = "dfs.data.transfer.protection"
	encrypts = "dfs.encrypt.data.transfer"
	suites   = "dfs.encrypt.data.transfer.cipher.suites"
	aes      = "AES/CTR/NoPadding"
)

// sizes are about those of chunks, packets and blocks.
var sizes = []int{0, 1, 511, 512, 513, 65535, 65536, 65537, block - 1, block, block + 1, 2*block + 65537}

// An hdfsWith is a realm with an HDFS in which alice reads /data.
type hdfsWith struct {
	*secure.Realm
	records [][]byte // of /data, a file each
}

// fill puts files of all sizes into /data.
func fill(r *secure.Realm) hdfsWith {
	h := hdfsWith{Realm: r}
	for i, size := range sizes {
		content := make([]byte, size)
		rand.NewChaCha8([32]byte{byte(i)}).Read(content)
		r.File(fmt.Sprintf("data/%02d", i), string(content))
		h.records = append(h.records, content)
	}
	r.Put(block, r.Path("data"), "/data")
	return h
}

func (h hdfsWith) clusters(t *testing.T, conf string, change func(*hdfs.Config)) *hdfs.Clusters {
	t.Helper()
	config := hdfs.Config{
		Conf: conf, Timeout: time.Minute, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Kerberos: namenode.Kerberos{Keytab: h.Path("alice.keytab"), Principal: "alice", Conf: h.Path("krb5.conf")},
	}
	if change != nil {
		change(&config)
	}
	k, err := hdfs.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// dataset is /data as a client with the configuration sees it.
func (h hdfsWith) dataset(t *testing.T, conf string) sourcetest.Dataset {
	env := &fetch.Env{HDFS: h.clusters(t, conf, nil)}
	return sourcetest.Attach(t, sourcetest.Fixture{
		Open: func() (fetch.Source, error) { return fetch.Open("hdfs://"+h.Address()+"/data?as=files", env) },
	})
}

// read reads all of it in one go and compares.
func (h hdfsWith) read(t *testing.T, d sourcetest.Dataset) error {
	t.Helper()
	if d.Records() != uint64(len(h.records)) {
		t.Fatalf("%d records, want %d", d.Records(), len(h.records))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	got := make([]byte, d.Bytes())
	if err := d.Read(ctx, d.Extents(0, d.Records()), got); err != nil {
		return err
	}
	if !bytes.Equal(got, bytes.Join(h.records, nil)) {
		t.Error("other bytes")
	}
	return nil
}

// A view is what a client's configuration demands, and why it gets nothing if
// it does not.
type view struct {
	protection string
	refusal    string
}

func TestDatanodes(t *testing.T) {
	r, sockets := secure.New(t), socketsFor(t)
	r.Configure(secure.Settings{protects: "authentication"})
	r.NameNode()
	stop := r.DataNode()
	h := fill(r)
	stop()
	const all = "authentication,integrity,privacy"
	rows := []struct {
		name     string
		settings secure.Settings // of the datanode
		views    []view
	}{
		{"authentication", secure.Settings{protects: "authentication"}, []view{
			{"authentication", ""}, {all, ""},
			{"integrity", "does not offer integrity"}, {"privacy", "does not offer privacy"}, {"", "hangs up"},
		}},
		{"integrity", secure.Settings{protects: "integrity"}, []view{
			{"integrity", ""}, {"privacy,Integrity", ""}, {"privacy", "does not offer privacy"}, {"", "hangs up"},
		}},
		{"privacy", secure.Settings{protects: "privacy"}, []view{{"privacy", ""}, {"integrity,privacy", ""}}},
		{"privacy by AES", secure.Settings{protects: "privacy", suites: aes}, []view{{"privacy", ""}}},
		{"all", secure.Settings{protects: all}, []view{{"authentication", ""}, {"integrity", ""}, {"privacy", ""}}},
		{"none", nil, []view{{"", ""}, {"privacy", "hangs up"}}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r.Configure(sockets.and(row.settings))
			stop := r.DataNode()
			defer stop()
			r.AwaitBlocks("/data/01")
			for _, v := range row.views {
				t.Run("for "+v.protection, func(t *testing.T) { h.look(t, v) })
				if v.refusal == "" {
					t.Run("by file for "+v.protection, h.near(t, h.Conf("near", sockets.and(secure.Settings{protects: v.protection}))))
				}
			}
		})
	}
	t.Run("logins", h.logins)
}

// look reads as a client with the view.
func (h hdfsWith) look(t *testing.T, v view) {
	conf := h.Conf("client", secure.Settings{protects: v.protection})
	err := h.read(t, h.dataset(t, conf))
	switch {
	case v.refusal == "" && err != nil:
		t.Error(err)
	case v.refusal != "" && !errors.Is(err, datanode.ErrNoReplica):
		t.Errorf("got %v", err)
	case v.refusal != "" && !strings.Contains(err.Error(), v.refusal):
		t.Errorf("%q does not say %q", err, v.refusal)
	}
}

// logins are those that cannot do.
func (h hdfsWith) logins(t *testing.T) {
	conf := h.Conf("client", nil)
	h.File("plain/core-site.xml", "<configuration/>")
	h.Run("kinit", "-c", h.Path("ended"), "-l", "1s", "-kt", h.Path("alice.keytab"), "alice")
	eventually.True(t, "the ticket ends", func() bool { return h.Try("klist", "-s", "-c", h.Path("ended")) != nil })
	rows := []struct {
		name   string
		change func(*hdfs.Config)
		says   string
		is     error
	}{
		{"a user", func(c *hdfs.Config) { c.User = "dave" }, `HDFS user "dave" is not valid: the cluster wants Kerberos`, meta.ErrInvalid},
		{"a keytab for no use", func(c *hdfs.Config) { c.Conf = h.Path("plain") }, "does not say that the cluster wants Kerberos", meta.ErrInvalid},
		{"no configuration", func(c *hdfs.Config) { c.Conf, c.Kerberos = "", namenode.Kerberos{} }, "the namenode wants Kerberos", syscall.EACCES},
		{"no ticket", func(c *hdfs.Config) {
			c.Kerberos.Keytab, c.Kerberos.Principal, c.Kerberos.Cache = "", "", h.Path("none")
		}, "run kinit", syscall.EACCES},
		{"an ended ticket", func(c *hdfs.Config) {
			c.Kerberos.Keytab, c.Kerberos.Principal, c.Kerberos.Cache = "", "", h.Path("ended")
		}, "its ticket ended at", syscall.EACCES},
		{"a ticket in no file", func(c *hdfs.Config) { c.Kerberos.Keytab, c.Kerberos.Principal, c.Kerberos.Cache = "", "", "KEYRING:x" }, "only files can be read", meta.ErrInvalid},
		{"another's name", func(c *hdfs.Config) { c.ActFor = "dave" }, "not allowed to impersonate dave", syscall.EACCES},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			src, err := fetch.Open("hdfs://"+h.Address()+"/data?as=files", &fetch.Env{HDFS: h.clusters(t, conf, row.change)})
			if err == nil {
				defer src.Close()
				err = fetch.Build(t.Context(), src, filepath.Join(t.TempDir(), "index"), nil)
			}
			if !errors.Is(err, row.is) || !strings.Contains(fmt.Sprint(err), row.says) {
				t.Errorf("got %v", err)
			}
		})
	}
	_, err := hdfs.New(hdfs.Config{Kerberos: namenode.Kerberos{Keytab: h.Path("none"), Principal: "alice"}})
	if !errors.Is(err, meta.ErrNotExist) || !strings.Contains(err.Error(), "this user may read") {
		t.Errorf("without the keytab: %v", err)
	}
}

package secure_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rankfs/fetch"
	"rankfs/meta"
	"rankfs/test/secure"
)

// What cannot be read is refused with the reason: a file in an encryption zone,
// and all of an HDFS whose namenode has no datanode's report yet.
func TestRefused(t *testing.T) {
	r := secure.New(t)
	keys := "jceks://file" + r.Path("keys.jceks")
	r.Configure(secure.Settings{protects: "privacy", "hadoop.security.key.provider.path": keys})
	r.Run("kinit", "-kt", r.Path("nn.keytab"), "nn/localhost")
	r.Java("org.apache.hadoop.crypto.key.KeyShell", "create", "key1", "-provider", keys) // namenodes look once
	stopName, stopData := r.NameNode(), r.DataNode()
	r.File("plain", "some bytes")
	r.Put(block, r.Path("plain"), "/plain")
	h := hdfsWith{Realm: r}
	conf := h.Conf("client", secure.Settings{protects: "privacy"})
	refused := func(t *testing.T, path string, is error, words ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		src, err := fetch.Open("hdfs://"+h.Address()+path+"?as=files", &fetch.Env{HDFS: h.clusters(t, conf, nil)})
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		err = fetch.Build(ctx, src, filepath.Join(t.TempDir(), "index"), nil)
		if is == nil && err != nil || !errors.Is(err, is) || ctx.Err() != nil {
			t.Fatalf("%s is refused with %v, want %v", path, err, is)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not say %q", err, w)
			}
		}
	}
	t.Run("an encryption zone", func(t *testing.T) {
		if err := r.HDFS().Mkdir("/zone", 0o755); err != nil {
			t.Fatal(err)
		}
		r.Java("org.apache.hadoop.hdfs.tools.CryptoAdmin", "-createZone", "-keyName", "key1", "-path", "/zone")
		r.Java("org.apache.hadoop.fs.FsShell", "-put", r.Path("plain"), "/zone/file") // which can encrypt
		refused(t, "/plain", nil)
		refused(t, "/zone/file", meta.ErrInvalid, "/zone/file", "it is in an encryption zone", "copy it out of the zone")
		refused(t, "/zone", meta.ErrInvalid, "it is in an encryption zone")
	})
	t.Run("safe mode", func(t *testing.T) {
		stopData()
		stopName()
		r.NameNode()
		refused(t, "/plain", meta.ErrUnavailable, "namenode is not ready", "safe mode", "hdfs dfsadmin -safemode get")
		r.DataNode()
		r.AwaitBlocks("/plain")
		refused(t, "/plain", nil)
	})
}

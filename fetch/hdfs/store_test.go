package hdfs_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/test/cluster"
	"rankfs/test/sourcetest"
)

// interrupted begins to index a file, and stops when half of it was read.
func interrupted(t *testing.T, k *hdfs.Clusters, uri string) {
	t.Helper()
	src, err := fetch.Open(uri, &fetch.Env{HDFS: k})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	err = fetch.Build(ctx, src, filepath.Join(dir, "index"), func(done, total int64, _ uint64) {
		if done > total/2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("ends with %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// A scan that was interrupted reads what is missing, and trusts nothing that a
// crash may have torn.
func TestScanGoesOn(t *testing.T) {
	c := cluster.Shared(t)
	path := c.Dir(t) + "/f"
	content := bytes.Repeat([]byte("a line of 32 bytes for a scan. \n"), 250_000)
	c.Host("data2").Put(t, path, content, 2, 128<<10)
	scratch := t.TempDir()
	uri := "hdfs://rankfs" + path + "?as=lines"
	same := func(k *hdfs.Config) { k.Scratch = scratch }
	interrupted(t, clusters(t, c, same), uri)

	found, err := filepath.Glob(filepath.Join(scratch, "*", "[0-9]*"))
	if err != nil || len(found) < 20 {
		t.Fatalf("%d findings are kept, %v", len(found), err)
	}
	for i, damage := range []func(file string) error{
		func(file string) error { return os.Truncate(file, 0) },
		func(file string) error { return os.Truncate(file, 7) },
		func(file string) error { return os.Truncate(file, 1000) },
		func(file string) error {
			b, err := os.ReadFile(file)
			b[len(b)/2] ^= 1
			return errors.Join(err, os.WriteFile(file, b, 0o600))
		},
	} {
		if err := damage(found[i]); err != nil {
			t.Fatal(err)
		}
	}
	k := clusters(t, c, same)
	d := sourcetest.Attach(t, sourcetest.Fixture{Open: func() (fetch.Source, error) { return fetch.Open(uri, &fetch.Env{HDFS: k}) }})
	if read := k.Stats().Bytes; read > uint64(len(content))*3/4 {
		t.Errorf("read %d bytes of %d again", read, len(content))
	}
	if d.Records() != 250_000 {
		t.Errorf("%d records", d.Records())
	}
	mustRead(t, d, content)
	if left, _ := os.ReadDir(scratch); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// Findings of a scan that did not go on are removed, and nothing else is.
func TestOldFindings(t *testing.T) {
	scratch := t.TempDir()
	const old, recent = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	for _, name := range []string{old, recent, "lost+found"} {
		if err := os.MkdirAll(filepath.Join(scratch, name, "1"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, age := range map[string]time.Duration{old: 8 * 24 * time.Hour, recent: 6 * 24 * time.Hour, "lost+found": 1000 * time.Hour} {
		then := time.Now().Add(-age)
		if err := os.Chtimes(filepath.Join(scratch, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	k, err := hdfs.New(hdfs.Config{User: "root", Scratch: scratch})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	left, err := filepath.Glob(filepath.Join(scratch, "*"))
	if err != nil || len(left) != 2 || filepath.Base(left[0]) != recent {
		t.Errorf("%v is left", left)
	}
}

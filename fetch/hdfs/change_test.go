package hdfs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	library "github.com/colinmarc/hdfs/v2"

	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/meta"
	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// In the middle of an epoch a file becomes another: what was read before is of
// one version, and from then on nothing is.
func TestChangeInTheMiddle(t *testing.T) {
	c := cluster.Shared(t)
	content := bytes.Repeat([]byte("old content, 24 bytes. \n"), 20_000)
	other := bytes.Repeat([]byte("new content, 24 bytes. \n"), 20_000)
	for _, test := range []struct {
		name   string
		change func(client *library.Client, path string) error
	}{
		{"deleted", func(k *library.Client, path string) error { return k.Remove(path) }},
		{"renamed", func(k *library.Client, path string) error { return k.Rename(path, path+".away") }},
		{"overwritten", func(k *library.Client, path string) error {
			err := k.Remove(path)
			c.Host("data2").Put(t, path, other, 2, block)
			return err
		}},
		{"replaced by another's rename", func(k *library.Client, path string) error {
			c.Host("data2").Put(t, path+".next", other, 2, block)
			return errors.Join(k.Remove(path), k.Rename(path+".next", path))
		}},
		{"appended to", func(k *library.Client, path string) error {
			w, err := k.Append(path)
			if err != nil {
				return err
			}
			_, err = w.Write([]byte("more\n"))
			return errors.Join(err, cluster.Finish(w))
		}},
		{"truncated", func(k *library.Client, path string) error {
			_, err := k.Truncate(path, 100_000)
			eventually.Done(t, 2*time.Minute, "the last block is short", func() error {
				_, err := k.Truncate(path, 100_000) // is refused until then
				return err
			})
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := c.Dir(t) + "/f"
			c.Host("data2").Put(t, path, content, 2, block)
			d := dataset(t, c, path+"?as=lines", nil)
			read := func(first, n uint64) error {
				extents := d.Extents(first, n)
				dst := make([]byte, n*24)
				err := d.Read(t.Context(), extents, dst)
				if err == nil && !bytes.Equal(dst, content[first*24:][:n*24]) {
					t.Errorf("lines %d+%d have other bytes", first, n)
				}
				return err
			}
			if err := read(0, 10_000); err != nil {
				t.Fatal(err)
			}
			if err := test.change(dial(t, c.Host("data1")), path); err != nil {
				t.Fatal(err)
			}
			for _, first := range []uint64{10_000, 0, 19_999} { // also what another reader had already
				if err := read(first, 1); !errors.Is(err, meta.ErrStale) {
					t.Errorf("a read of line %d ends with %v", first, err)
				}
			}
			eventually.Within(t, 2*time.Minute, "Check finds the change", func() bool { return errors.Is(d.Check(t.Context()), meta.ErrStale) })
		})
	}
}

// A tree is stale as soon as a read has met a file of it that is another or gone, which is
// said by its name: no round of looks has to come to it.
func TestAReadNoticesAChange(t *testing.T) {
	c := cluster.Shared(t)
	k := dial(t, c.Host("data1"))
	for name, change := range map[string]func(path string) error{
		"renamed": func(path string) error { return k.Rename(path, path+".away") },
		"deleted": k.Remove,
		"another": func(path string) error {
			err := k.Remove(path)
			c.Host("data2").Put(t, path, []byte("another"), 1, block)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := c.Dir(t)
			const dirs = 12 // a round looks into one
			for i := range dirs - 1 {
				at := fmt.Sprintf("%s/%02d", dir, i)
				if err := errors.Join(k.MkdirAll(at, 0o755), k.CreateEmptyFile(at+"/f")); err != nil {
					t.Fatal(err)
				}
			}
			last := fmt.Sprintf("%s/%02d/f", dir, dirs-1)
			c.Host("data2").Put(t, last, []byte("content"), 1, block)
			d := dataset(t, c, dir+"?as=files", nil)
			if err := change(last); err != nil {
				t.Fatal(err)
			}
			err := d.Read(t.Context(), d.Extents(dirs-1, 1), make([]byte, len("content")))
			if !errors.Is(err, meta.ErrStale) || errors.Is(err, meta.ErrGone) || !strings.Contains(err.Error(), last) {
				t.Errorf("a read ends with %v", err)
			}
			if err := d.Check(t.Context()); !errors.Is(err, meta.ErrStale) {
				t.Errorf("then a check finds %v", err)
			}
		})
	}
}

// A dataset of a directory is stale once a file has come into it, also for a node that attached it
// before: all nodes say the same of it, whenever they started.
func TestAFileComes(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	k := dial(t, c.Host("data1"))
	for i := range 12 {
		at := fmt.Sprintf("%s/%d", dir, i%2)
		if err := errors.Join(k.MkdirAll(at, 0o755), k.CreateEmptyFile(fmt.Sprintf("%s/f%02d", at, i))); err != nil {
			t.Fatal(err)
		}
	}
	d := dataset(t, c, dir+"?as=files", nil)
	if err := errors.Join(d.Check(t.Context()), k.CreateEmptyFile(dir+"/1/g")); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, 2*time.Minute, "Check finds it", func() bool { return errors.Is(d.Check(t.Context()), meta.ErrStale) })
}

// A snapshot has a file as it was, though the file's last block is longer since.
func TestSnapshot(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	content, _ := text(400)
	c.Host("data1").Put(t, dir+"/f", content, 2, block)
	c.Snapshot(t, dir, "then")
	client := dial(t, c.Host("data1"))
	w, err := client.Append(dir + "/f")
	if err != nil {
		t.Fatal(err)
	}
	more := bytes.Repeat([]byte("more\n"), block/3)
	if _, err := w.Write(more); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Finish(w); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		path string
		want []byte
	}{{"/.snapshot/then/f", content}, {"/f", append(slices.Clip(content), more...)}} {
		for _, as := range []string{"lines", "chunks", "fixed:7", "files"} {
			d := dataset(t, c, dir+row.path+"?as="+as, nil)
			got := make([]byte, d.Bytes())
			want := row.want[:len(row.want)/7*7]
			if as != "fixed:7" {
				want = row.want
			}
			if err := d.Read(t.Context(), d.Extents(0, d.Records()), got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s as %s: %d bytes, other ones than the %d that were written, or %v", row.path, as, len(got), len(want), err)
			}
		}
	}
}

// What is not served is refused when it is registered, and how to go on is said.
func TestRefused(t *testing.T) {
	c := cluster.Exclusive(t)
	dir := c.Dir(t)
	client := dial(t, c.Host("data1"))
	for _, name := range []string{"/secret/f", "/open/f", "/plain/f"} {
		c.Host("data1").Put(t, dir+name, []byte("a\nb\n"), 1, block)
	}
	if err := client.Chmod(dir+"/secret", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := client.Mkdir(dir+"/empty", 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := client.Append(dir + "/open/f")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Write([]byte("c\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := client.Mkdir(dir+"/coded", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.SetCode(t.Context(), dir+"/coded", "XOR-2-1-1024k"); err != nil {
		t.Fatal(err)
	}
	if err := c.PutByWeb(t.Context(), dir+"/coded/f", []byte("a\nb\n")); err != nil {
		t.Fatal(err)
	}

	k := clusters(t, c, func(k *hdfs.Config) { k.User = "mallory" })
	for _, test := range []struct {
		name, uri string
		is        error
		words     string
	}{
		{"no permission", "hdfs://rankfs" + dir + "/secret/f", os.ErrPermission, `setfacl -m user:mallory`},
		{"no permission to list", "hdfs://rankfs" + dir + "/secret", os.ErrPermission, `setfacl -m user:mallory`},
		{"being written", "hdfs://rankfs" + dir + "/open/f", meta.ErrBusy, "try again when it is closed"},
		{"being written, in a directory", "hdfs://rankfs" + dir + "/open", meta.ErrBusy, "try again when it is closed"},
		{"erasure-coded", "hdfs://rankfs" + dir + "/coded/f", meta.ErrInvalid, "copy it to a directory with replication"},
		{"nothing there", "hdfs://rankfs" + dir + "/none", meta.ErrNotExist, dir + "/none"},
		{"no match", "hdfs://rankfs" + dir + "/none-*", meta.ErrNotExist, "no files"},
		{"an empty directory", "hdfs://rankfs" + dir + "/empty", meta.ErrNotExist, "no files"},
		{"nothing there", "hdfs://data3:1" + dir + "/plain/f", meta.ErrBusy, "nothing listens there"},
		{"no such host", "hdfs://nosuchhost:8020" + dir + "/plain/f", meta.ErrBusy, `host name "nosuchhost"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			refused(t, ctx, k, test.uri, test.is, test.words)
		})
	}
	t.Run("safe mode", func(t *testing.T) {
		if err := c.SafeMode(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := c.SafeMode(context.Background(), false); err != nil {
				t.Error(err)
			}
		}()
		// It does not hinder reading.
		if err := register(t.Context(), k, "hdfs://rankfs"+dir+"/plain", filepath.Join(t.TempDir(), "index")); err != nil {
			t.Error(err)
		}
	})
}

// register makes an index, as the creation of a dataset does.
func register(ctx context.Context, k *hdfs.Clusters, uri, index string) error {
	src, err := fetch.Open(uri, &fetch.Env{HDFS: k})
	if err != nil {
		return err
	}
	return errors.Join(fetch.Build(ctx, src, index, nil), src.Close())
}

func refused(t *testing.T, ctx context.Context, k *hdfs.Clusters, uri string, is error, words string) {
	t.Helper()
	dir := t.TempDir()
	err := register(ctx, k, uri, filepath.Join(dir, "index"))
	if !errors.Is(err, is) || !strings.Contains(fmt.Sprint(err), words) || ctx.Err() != nil {
		t.Errorf("refused with %v; want %v with %q", err, is, words)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// Each line is a record once, wherever blocks end, as is each chunk of lines.
func TestLinesAcrossBlocks(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	r := rand.New(rand.NewPCG(3, 3))
	const small = 1024
	rows := map[string]string{
		"one byte":                     "x",
		"one line feed":                "\n",
		"line feeds alone":             strings.Repeat("\n", 3*small),
		"exactly one block":            strings.Repeat("1234567\n", small/8),
		"a block and a byte":           strings.Repeat("1234567\n", small/8) + "x",
		"a block and a line feed":      strings.Repeat("1234567\n", small/8) + "\n",
		"a line feed begins a block":   strings.Repeat("x", small) + "\n" + strings.Repeat("y", small-1) + "\n",
		"CRLF across a cut":            strings.Repeat("x", small-1) + "\r\n" + "next\r\n",
		"a line of several blocks":     "a\n" + strings.Repeat("x", 5*small) + "\nb\n",
		"no line feed at all":          strings.Repeat("x", 3*small+17),
		"several blocks without one":   "a\n" + strings.Repeat("x", 3*small),
		"the last line without an end": strings.Repeat("1234567\n", 300) + "tail",
	}
	for i := range 6 {
		var b strings.Builder
		for b.Len() < 10*small {
			b.WriteString(strings.Repeat("z", r.IntN(1+r.IntN(2500))) + []string{"\n", "\r\n"}[r.IntN(2)])
		}
		rows[fmt.Sprint("random ", i)] = b.String()
	}
	for name, content := range rows {
		t.Run(name, func(t *testing.T) {
			path := dir + "/" + strings.ReplaceAll(name, " ", "-")
			c.Host("data1").Put(t, path, []byte(content), 2, small)
			d := dataset(t, c, path+"?as=lines", nil)
			records := cutLines([]byte(content))
			if d.Records() != uint64(len(records)) {
				t.Fatalf("%d records, want %d", d.Records(), len(records))
			}
			for i, record := range records {
				if d.Size(uint64(i)) != int64(len(record)) {
					t.Fatalf("line %d has %d bytes, want %d", i, d.Size(uint64(i)), len(record))
				}
			}
			mustRead(t, d, []byte(content))
			byChunk := dataset(t, c, path+"?as=chunks", nil)
			mustRead(t, byChunk, []byte(content))
			if byChunk.Chunks() != d.Chunks() {
				t.Errorf("%d chunks, and %d if lines are not counted", d.Chunks(), byChunk.Chunks())
			}
			for i := range d.Chunks() {
				if a, b := d.Chunk(i), byChunk.Chunk(i); a.Bytes != b.Bytes {
					t.Errorf("chunk %d has %d bytes, and %d if lines are not counted", i, a.Bytes, b.Bytes)
				}
			}
		})
	}
}

// Files without bytes are records, and no lines.
func TestEmptyFiles(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	for name, content := range map[string]string{"a": "", "b": "b\n", "c": "", "d": "d"} {
		c.Host("data1").Put(t, dir+"/"+name, []byte(content), 1, block)
	}
	for as, want := range map[string]uint64{"files": 4, "lines": 2, "fixed:1": 3, "chunks": 2} {
		d := dataset(t, c, dir+"?as="+as, nil)
		if d.Records() != want {
			t.Errorf("%s: %d records, want %d", as, d.Records(), want)
		}
		mustRead(t, d, []byte("b\nd"))
	}
}

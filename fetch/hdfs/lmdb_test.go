package hdfs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clib "github.com/bmatsuo/lmdb-go/lmdb"
	"golang.org/x/sys/unix"

	"rankfs/cache"
	"rankfs/cache/blobs"
	"rankfs/cache/disks"
	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/test/cluster"
	"rankfs/test/eventually"
	"rankfs/test/sourcetest"
)

// database is the file of an LMDB with the records in each of some databases.
func database(t testing.TB, records [][]byte, names ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	env, err := clib.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	if err := errors.Join(env.SetMapSize(1<<30), env.SetMaxDBs(8), env.Open(dir, clib.NoSync, 0600)); err != nil {
		t.Fatal(err)
	}
	err = env.Update(func(txn *clib.Txn) error {
		for _, name := range names {
			dbi, err := txn.OpenDBI(name, clib.Create)
			for i, r := range records {
				if err == nil {
					err = txn.Put(dbi, binary.BigEndian.AppendUint32(nil, uint32(i)), r, 0)
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "data.mdb"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// random is n records of up to so many bytes.
func random(n, most int) (records [][]byte) {
	r := rand.New(rand.NewPCG(3, 0))
	for range n {
		b := make([]byte, r.IntN(most))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		records = append(records, b)
	}
	return records
}

// A disk is where copies are, with its budget.
type disk struct {
	dir   string
	cache *cache.Cache
}

func newDisk(t testing.TB, bytes int64) disk { return diskIn(t, t.TempDir(), bytes) }

func diskIn(t testing.TB, dir string, bytes int64) disk {
	t.Helper()
	k, err := cache.New(cache.Config{RAMBytes: 16 << 20, NVMe: []disks.Dir{{Path: dir, Bytes: bytes}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return disk{filepath.Join(dir, "copies"), k}
}

// on makes copies go to the disk.
func (d disk) on(c *hdfs.Config) {
	c.Copies = copies{blobs.New(blobs.Config{
		Room: d.cache, Folder: hdfs.CopyFolder, Suffix: hdfs.CopySuffix, Log: slog.New(slog.DiscardHandler),
	})}
}

// copies are blobs, as those of a daemon.
type copies struct{ *blobs.Store }

func (c copies) Take(ctx context.Context, key string, size int64, make func(context.Context, hdfs.Unfinished) error, told func(int64)) (hdfs.Copy, error) {
	b, err := c.Store.Take(ctx, key, size, func(ctx context.Context, b *blobs.Blob) error { return make(ctx, b) }, told)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (d disk) used() int64 { return d.cache.Stats().NVMe[0].Others }

// files lists the copies by kind.
func (d disk) files(t testing.TB, kind string) []string {
	t.Helper()
	names, err := filepath.Glob(d.dir + "/*." + kind)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// open opens an LMDB in HDFS.
func open(t testing.TB, k *hdfs.Clusters, path, db string) *hdfs.LMDB {
	t.Helper()
	src, err := k.OpenLMDB("rankfs", path, db)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// build makes the index of a source, and returns it.
func build(t testing.TB, src fetch.Source) *index.Index {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index")
	if err := fetch.Build(t.Context(), src, path, nil); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// same fails the test unless a dataset's records are those wanted.
func same(t *testing.T, src fetch.Source, x *index.Index, want [][]byte) {
	t.Helper()
	if x.Records() != uint64(len(want)) {
		t.Fatalf("%d records, want %d", x.Records(), len(want))
	}
	for i, r := range want {
		got := make([]byte, x.Size(uint64(i)))
		if err := src.Read(t.Context(), []index.Extent{x.Extent(uint64(i))}, got); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if !bytes.Equal(got, r) {
			t.Fatalf("record %d has other bytes", i)
		}
	}
}

// An LMDB in HDFS is a source like any other.
func TestLMDBConformance(t *testing.T) {
	c := cluster.Shared(t)
	records := random(300, 20_000)
	content := database(t, records, "train", "test")
	common := c.Dir(t)
	c.Host("data1").Put(t, common+"/data.mdb", content, 2, 1<<20)
	sourcetest.Run(t, func(t *testing.T) sourcetest.Fixture {
		dir := common
		if strings.Contains(t.Name(), "notices") {
			dir = c.Dir(t)
			c.Host("data1").Put(t, dir+"/data.mdb", content, 2, 1<<20)
		}
		env := &fetch.Env{HDFS: clusters(t, c, newDisk(t, 64<<20).on)}
		client := dial(t, c.Host("data1"))
		return sourcetest.Fixture{
			Open:    func() (fetch.Source, error) { return fetch.Open("hdfs://rankfs"+dir+"?as=lmdb&db=train", env) },
			Records: records,
			Changes: []sourcetest.Change{
				{Name: "a file that is gone", Late: true, Do: func() error { return client.Remove(dir + "/data.mdb") }},
				{Name: "a file that is written anew", Late: true, Do: func() error {
					err := client.Remove(dir + "/data.mdb")
					c.Host("data1").Put(t, dir+"/data.mdb", content, 2, 1<<20)
					return err
				}},
				{Name: "a file that is appended to", Late: true, Do: func() error {
					w, err := client.Append(dir + "/data.mdb")
					if err != nil {
						return err
					}
					_, err = w.Write(make([]byte, 4096))
					if err := cluster.Finish(w); err != nil {
						return err
					}
					return err
				}},
			},
		}
	})
}

// Databases of one file are made from one copy, whatever the cluster is called;
// it goes with the last dataset.
func TestDatasetsShareACopy(t *testing.T) {
	c := cluster.Shared(t)
	records := random(300, 20_000)
	content := database(t, records, "a", "b")
	path := c.Dir(t) + "/data.mdb"
	c.Host("data1").Put(t, path, content, 2, 1<<20)
	d := newDisk(t, 64<<20)
	k := clusters(t, c, d.on)
	k.Retain(nil)

	a, b := open(t, k, path, "a"), open(t, k, path, "b")
	xa, xb := build(t, a), build(t, b)
	for _, authority := range []string{"", c.Addresses()[0]} {
		src, err := k.OpenLMDB(authority, path, "a")
		if err != nil {
			t.Fatal(err)
		}
		x := build(t, src)
		defer x.Close()
		if x.Fingerprint() != xa.Fingerprint() {
			t.Errorf("by %q it is another version of the same file", authority)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
	defer xa.Close()
	defer xb.Close()
	if n := k.Stats().Bytes; n > uint64(len(content)*11/10) {
		t.Errorf("%d bytes were fetched for four datasets of a file of %d", n, len(content))
	}
	if copies := d.files(t, "mdb"); len(copies) != 1 || d.used() < int64(len(content)) || d.used() > int64(len(content)+8192) {
		t.Errorf("copies %v take %d bytes of the budget, want one of %d", copies, d.used(), len(content))
	}
	if xa.Fingerprint() == xb.Fingerprint() {
		t.Error("two databases have one fingerprint")
	}
	k.Retain([]string{xa.Fingerprint(), xb.Fingerprint()})
	for _, src := range []*hdfs.LMDB{a, b} {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
	k.Retain([]string{xb.Fingerprint()})
	fetched := k.Stats().Bytes
	b = open(t, k, path, "b")
	if err := b.Attach(t.Context(), xb, xb.Fingerprint()); err != nil {
		t.Fatal(err)
	}
	k.Retain(nil) // of one that is being read
	same(t, b, xb, records)
	if n := k.Stats().Bytes - fetched; n != 0 {
		t.Errorf("%d bytes were fetched again", n)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(d.dir)
	if err != nil || len(left) > 0 || d.used() != 0 {
		t.Errorf("left with no dataset: %v, %d bytes of the budget, %v", left, d.used(), err)
	}
}

// An interrupted copy goes on where it stopped, in another process too.
func TestInterruptedCopy(t *testing.T) {
	c := cluster.Shared(t)
	records := random(1, 2)
	for len(records) < 64 {
		records = append(records, bytes.Repeat([]byte{byte(len(records))}, 1<<20))
	}
	content := database(t, records, "a")
	path := c.Dir(t) + "/data.mdb"
	c.Host("data1").Put(t, path, content, 2, 4<<20)
	d := newDisk(t, 128<<20)

	brought := interrupt(t, clusters(t, c, d.on), path, len(content))
	if len(d.files(t, "mdb")) > 0 || len(d.files(t, "part")) != 1 {
		t.Fatal("half a copy has the name of a whole one, or is gone")
	}
	k := clusters(t, c, d.on)
	k.Retain(nil) // no dataset wants it yet
	src := open(t, k, path, "a")
	defer src.Close()
	var last int64
	if err := src.Copy(t.Context(), func(bytes, total int64) { last = bytes }); err != nil {
		t.Fatal(err)
	}
	// Of what was on its way when it was interrupted, at most a granule a stream is lost.
	if n := int64(k.Stats().Bytes); n > (int64(len(content))-brought)*11/10+5<<20 || last > int64(len(content)) {
		t.Errorf("%d bytes fetched to go on after %d of %d", n, brought, len(content))
	}
	x := build(t, src)
	defer x.Close()
	if err := src.Attach(t.Context(), x, x.Fingerprint()); err != nil {
		t.Fatal(err)
	}
	same(t, src, x, records)
}

// interrupt gives up a copy when some of it is there, and returns how much.
func interrupt(t *testing.T, k *hdfs.Clusters, path string, size int) int64 {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer cancel()
		_ = eventually.Until(ctx, comesTo(k, uint64(size/3)))
	}()
	src := open(t, k, path, "a")
	defer src.Close()
	if err := src.Copy(ctx, func(int64, int64) {}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	return int64(k.Stats().Bytes)
}

// comesTo says that not so many bytes have come yet, as long as that is so.
func comesTo(k *hdfs.Clusters, bytes uint64) func() error {
	return func() error {
		if now := k.Stats().Bytes; now < bytes {
			return fmt.Errorf("%d of %d bytes have come", now, bytes)
		}
		return nil
	}
}

// What a crash of the machine left half written is found out.
func TestTornCopy(t *testing.T) {
	c := cluster.Shared(t)
	records := random(400, 40_000)
	content := database(t, records, "a")
	path := c.Dir(t) + "/data.mdb"
	c.Host("data1").Put(t, path, content, 2, 1<<20)
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, d disk)
		most  int // MiB that are fetched again
	}{
		{"a granule that the disk lost", func(t *testing.T, d disk) { scribble(t, d.files(t, "mdb")[0], 2<<20+17) }, 1},
		{"a sum that the disk lost", func(t *testing.T, d disk) { scribble(t, d.files(t, "sums")[0], 8) }, 1},
		{"the same in one that is not whole", func(t *testing.T, d disk) {
			mdb := d.files(t, "mdb")[0]
			scribble(t, mdb, 2<<20+17)
			if err := os.Rename(mdb, strings.TrimSuffix(mdb, "mdb")+"part"); err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"a copy that was cut short", func(t *testing.T, d disk) {
			if err := os.Truncate(d.files(t, "mdb")[0], 5000); err != nil {
				t.Fatal(err)
			}
		}, len(content)},
		{"no sums", func(t *testing.T, d disk) {
			if err := os.Remove(d.files(t, "sums")[0]); err != nil {
				t.Fatal(err)
			}
		}, len(content)},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDisk(t, 64<<20)
			first := open(t, clusters(t, c, d.on), path, "a")
			x := build(t, first)
			defer x.Close()
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			test.spoil(t, d)
			k := clusters(t, c, d.on)
			k.Retain([]string{x.Fingerprint()})
			src := reattach(t, k, path, x)
			defer src.Close()
			same(t, src, x, records)
			if n := int(k.Stats().Bytes); n > test.most<<20*5/4 {
				t.Errorf("%d bytes were fetched again", n)
			}
		})
	}
}

// reattach attaches a source, waiting for its copy to be made.
func reattach(t *testing.T, k *hdfs.Clusters, path string, x *index.Index) *hdfs.LMDB {
	t.Helper()
	src := open(t, k, path, "a")
	eventually.Done(t, time.Minute, "the source is attached", func() error {
		err := src.Attach(t.Context(), x, x.Fingerprint())
		if err != nil && !errors.Is(err, meta.ErrBusy) {
			t.Fatal(err)
		}
		return err
	})
	return src
}

// scribble changes a byte of a file.
func scribble(t *testing.T, name string, at int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}

// What has no room is refused before it is fetched, and leaves nothing.
func TestNoRoomForACopy(t *testing.T) {
	c := cluster.Shared(t)
	records := random(400, 40_000)
	content := database(t, records, "a")
	dir := c.Dir(t)
	path := dir + "/data.mdb"
	c.Host("data1").Put(t, path, content, 2, 1<<20)
	c.Host("data1").Put(t, dir+"/text", bytes.Repeat([]byte("text\n"), 10_000), 2, 1<<20)
	c.Host("data1").Put(t, dir+"/empty", nil, 2, 1<<20)
	c.Host("data1").Put(t, dir+"/other.mdb", database(t, records, "b"), 2, 1<<20)
	for _, test := range []struct {
		name, path string
		budget     int64
		size       int64 // of the disk; 0: it is large
		is         error
		says       string
	}{
		{"budget", path, 2 << 20, 0, meta.ErrNoSpace, "--nvme"},
		{"full disk", path, 64 << 20, 2 << 20, meta.ErrNoSpace, "its disk has no room"},
		{"no disk", path, 0, 0, meta.ErrInvalid, "mount with --nvme"},
		{"no LMDB", dir + "/text", 64 << 20, 0, meta.ErrCorrupt, "/text"},
		{"empty", dir + "/empty", 64 << 20, 0, meta.ErrInvalid, "empty"},
		{"nothing", dir + "/nothing", 64 << 20, 0, meta.ErrNotExist, "nothing"},
		{"no such database", dir + "/other.mdb", 64 << 20, 0, meta.ErrNotExist, `there are the databases ["b"]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if test.size > 0 {
				dir = small(t, test.size)
			}
			d := diskIn(t, dir, max(test.budget, 1<<20))
			k := clusters(t, c, func(c *hdfs.Config) {
				if test.budget > 0 {
					d.on(c)
				}
			})
			src := open(t, k, test.path, "a")
			defer src.Close()
			err := src.Copy(t.Context(), func(int64, int64) {})
			if !errors.Is(err, test.is) || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("got %v, want %v saying %q", err, test.is, test.says)
			}
			if left, _ := os.ReadDir(d.dir); len(left) > 0 || d.used() != 0 {
				t.Errorf("left: %v, %d bytes of the budget", left, d.used())
			}
			if n := k.Stats().Bytes; n > 600<<10 {
				t.Errorf("%d bytes were fetched for nothing", n)
			}
		})
	}
}

// small is the directory of a file system of so many bytes.
func small(t *testing.T, bytes int64) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("small", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

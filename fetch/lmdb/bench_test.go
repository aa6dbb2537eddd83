package lmdb_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clib "github.com/bmatsuo/lmdb-go/lmdb"
	"golang.org/x/sys/unix"

	"rankfs/fetch/index"
	"rankfs/fetch/lmdb"
)

const (
	benchRecords = 200_000
	benchSize    = 4096
	benchBatch   = 256
)

func benchPath() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("rankfs-bench-%d", os.Getpid()))
}

// benchDB is a database of 200,000 values of 4 KiB, 1.6 GB. It is made once in
// a run and removed at its end.
func benchDB(b *testing.B) string {
	b.Helper()
	path := benchPath()
	if _, err := os.Stat(path); err == nil {
		return path
	}
	update(b, path, 0, func(txn *clib.Txn) error {
		dbi, err := txn.OpenRoot(0)
		value := make([]byte, benchSize)
		for i := range benchRecords {
			if err == nil {
				little.PutUint64(value, uint64(i))
				err = txn.Put(dbi, fmt.Appendf(nil, "%08d", i), value, clib.Append)
			}
		}
		return err
	})
	return path
}

// chill drops the file from the page cache.
func chill(b *testing.B, path string) {
	b.Helper()
	f, err := os.Open(filepath.Join(path, "data.mdb"))
	if err == nil {
		defer f.Close()
		err = f.Sync()
	}
	if err == nil {
		err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkScan(b *testing.B) {
	path := benchDB(b)
	for _, cold := range []bool{false, true} {
		b.Run(fmt.Sprintf("cold=%v", cold), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				if cold {
					chill(b, path)
				}
				x, err := index.Create(filepath.Join(b.TempDir(), "index"))
				if err != nil {
					b.Fatal(err)
				}
				s, err := lmdb.Open(path, "", nil)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if _, err := s.Scan(ctx, x, func(int64, int64) {}); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				x.Abort()
				s.Close()
				b.StartTimer()
			}
		})
	}
}

// What a scan replaces.
func BenchmarkCursor(b *testing.B) {
	path := benchDB(b)
	for b.Loop() {
		b.StopTimer()
		chill(b, path)
		env, err := clib.NewEnv()
		if err == nil {
			err = env.Open(path, clib.Readonly|clib.NoLock|clib.NoReadahead, 0)
		}
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		err = env.View(func(txn *clib.Txn) error {
			txn.RawRead = true
			dbi, err := txn.OpenRoot(0)
			if err != nil {
				return err
			}
			c, err := txn.OpenCursor(dbi)
			if err != nil {
				return err
			}
			defer c.Close()
			for {
				if _, _, err := c.Get(nil, nil, clib.Next); err != nil {
					if clib.IsNotFound(err) {
						return nil
					}
					return err
				}
			}
		})
		if err != nil {
			b.Fatal(err)
		}
		env.Close()
	}
}

// One operation is a batch of 256 values. The parallel rows have two readers.
func BenchmarkRead(b *testing.B) {
	path := benchDB(b)
	s, x := serve(b, path, "", new(lmdb.Holds))
	all := make([]index.Extent, x.Records())
	for i := range all {
		all[i] = x.Extent(uint64(i))
	}
	shuffled := append([]index.Extent(nil), all...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	orders := []struct {
		name    string
		extents []index.Extent
	}{{"sequential", all}, {"random", shuffled}}
	read := func(b *testing.B, o []index.Extent, n int, dst []byte) {
		first := n * benchBatch % (len(o) - benchBatch)
		if err := s.Read(ctx, o[first:first+benchBatch], dst); err != nil {
			b.Fatal(err)
		}
	}
	for _, o := range orders {
		b.Run("warm/"+o.name, func(b *testing.B) {
			dst := make([]byte, benchBatch*benchSize)
			for n := range len(o.extents) / benchBatch {
				read(b, o.extents, n, dst)
			}
			b.SetBytes(int64(len(dst)))
			n, most := 0, int64(0)
			for b.Loop() {
				read(b, o.extents, n, dst)
				if n++; n%64 == 0 {
					most = max(most, residentFile(b))
				}
			}
			b.ReportMetric(float64(most>>20), "MiB-RssFile")
		})
		// Every batch once, from the disk.
		b.Run("cold/"+o.name, func(b *testing.B) {
			dst := make([]byte, benchBatch*benchSize)
			batches := len(o.extents) / benchBatch
			b.SetBytes(int64(batches * len(dst)))
			for b.Loop() {
				b.StopTimer()
				chill(b, path)
				b.StartTimer()
				for n := range batches {
					read(b, o.extents, n, dst)
				}
			}
		})
	}
}

// residentFile is how much of mapped files the process seems to occupy.
func residentFile(b *testing.B) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	var kib int64
	_, line, _ := strings.Cut(string(status), "RssFile:")
	fmt.Sscan(line, &kib)
	return kib << 10
}

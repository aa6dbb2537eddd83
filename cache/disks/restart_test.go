package disks_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"rankfs/cache/disks"
	"rankfs/test/eventually"
)

// filled is a directory that a tier has left with slabs of 5000 bytes.
func filled(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	k := start(t, one(dir, 1<<20))
	k.putAll(0, n, 5000)
	k.got(0, 5000) // the one used last
	k.stop()
	return dir
}

func flip(t testing.TB, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	must(t, err)
	_, err = f.WriteAt([]byte{b[0] ^ 1}, at)
	must(t, err)
}

// Whatever becomes of the index, the slabs are there, and right.
func TestRestart(t *testing.T) {
	index := func(dir string) string { return dir + "/.index" }
	for _, test := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		warn   bool
	}{
		{"as left", func(*testing.T, string) {}, false},
		{"index lost", func(t *testing.T, dir string) { must(t, os.Remove(index(dir))) }, false},
		{"index empty", func(t *testing.T, dir string) { must(t, os.Truncate(index(dir), 0)) }, true},
		{"index torn", func(t *testing.T, dir string) { must(t, os.Truncate(index(dir), 500)) }, true},
		{"index short of a row", func(t *testing.T, dir string) { must(t, os.Truncate(index(dir), 16+64*19+8)) }, true},
		{"index damaged", func(t *testing.T, dir string) { flip(t, index(dir), 300) }, true},
		{"index of another directory", func(t *testing.T, dir string) {
			b, err := os.ReadFile(index(filled(t, 30)))
			must(t, err)
			must(t, os.WriteFile(index(dir), b, 0o600))
		}, false},
		{"index of before", func(t *testing.T, dir string) {
			b, err := os.ReadFile(index(filled(t, 3)))
			must(t, err)
			must(t, os.WriteFile(index(dir), b, 0o600))
		}, false},
		{"index that is a directory", func(t *testing.T, dir string) {
			must(t, os.Remove(index(dir)))
			must(t, os.Mkdir(index(dir), 0o700))
		}, true},
		{"index that is a pipe", func(t *testing.T, dir string) {
			must(t, os.Remove(index(dir)))
			must(t, unix.Mkfifo(index(dir), 0o600))
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filled(t, 20)
			test.damage(t, dir)
			k := start(t, one(dir, 1<<20))
			eventually.True(t, "the names have been seen", func() bool { return k.stats().Slabs == 20 })
			for n := range 20 {
				if !k.got(n, 5000) {
					t.Errorf("slab %d is not there", n)
				}
			}
			if s := k.stats(); s.Hashed != 20 || s.Damaged != 0 || s.Fault != nil {
				t.Errorf("%+v", s)
			}
			if n := k.log.count("nvme index not used"); (n == 1) != test.warn {
				t.Errorf("%d warnings", n)
			}
			k.put(99, 100)
			if u, real := k.stats().Used, diskUsage(t, dir); u != real {
				t.Errorf("%d bytes used, %d on disk", u, real)
			}
			k.stop()
			k = start(t, one(dir, 1<<20)) // with an index that is right again
			if s := k.stats(); s.Slabs != 21 || k.log.count("nvme index not used") != 0 {
				t.Errorf("the next one: %+v", s)
			}
		})
	}
}

// The order of use survives, and a smaller budget keeps what was used last.
func TestRestartSmaller(t *testing.T) {
	for _, index := range []bool{true, false} {
		dir := filled(t, 20)
		if !index {
			must(t, os.Remove(dir+"/.index"))
			for n, path := range slabs(t, dir) { // by when they were written, then
				when := time.Unix(int64(1000+n), 0)
				if strings.Contains(path, "-7-0-") {
					when = time.Now()
				}
				must(t, os.Chtimes(path, when, when))
			}
		}
		k := start(t, one(dir, 40<<10))
		eventually.True(t, "it fits", func() bool { return k.stats().Used <= 40<<10 })
		if s := k.stats(); s.Slabs < 4 || s.Slabs > 5 || !k.Has(key(0)) {
			t.Errorf("index %v: %+v, the one used last is there: %v", index, s, k.Has(key(0)))
		}
		if n := len(slabs(t, dir)); n != k.stats().Slabs {
			t.Errorf("%d slabs on disk", n)
		}
	}
}

// What an earlier daemon left is hashed before it is served, and what is not
// right is removed and counted.
func TestDamaged(t *testing.T) {
	for _, test := range []struct {
		name   string
		damage func(t *testing.T, path string)
		lost   bool
	}{
		{"a bit", func(t *testing.T, path string) { flip(t, path, 4999) }, false},
		{"zeros", func(t *testing.T, path string) { must(t, os.Truncate(path, 0)); must(t, os.Truncate(path, 5000)) }, false},
		{"cut short", func(t *testing.T, path string) { must(t, os.Truncate(path, 4096)) }, false},
		{"grown", func(t *testing.T, path string) { must(t, os.Truncate(path, 5001)) }, false},
		{"another's bytes", func(t *testing.T, path string) { must(t, os.WriteFile(path, content(key(4), 5000), 0o600)) }, false},
		{"another's name", func(t *testing.T, path string) {
			other, err := filepath.Glob(filepath.Dir(path) + "/*-7-4-*.slab")
			must(t, err)
			must(t, os.Rename(other[0], path))
		}, false},
		{"a directory", func(t *testing.T, path string) { must(t, os.Remove(path)); must(t, os.Mkdir(path, 0o700)) }, false},
		{"a pipe", func(t *testing.T, path string) { must(t, os.Remove(path)); must(t, unix.Mkfifo(path, 0o600)) }, false},
		{"a symbolic link", func(t *testing.T, path string) { must(t, os.Remove(path)); must(t, os.Symlink("/etc/passwd", path)) }, false},
		{"gone", func(t *testing.T, path string) { must(t, os.Remove(path)) }, true},
	} {
		for _, index := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				dir := filled(t, 20)
				paths, err := filepath.Glob(dir + "/*-7-3-*.slab")
				must(t, err)
				if !index {
					must(t, os.Remove(dir+"/.index"))
				}
				test.damage(t, paths[0])
				k := start(t, one(dir, 1<<20))
				for range 2 {
					if k.got(3, 5000) {
						t.Error("it was served")
					}
				}
				for n := range 20 {
					if gone := n == 3 || n == 4 && test.name == "another's name"; !gone && !k.got(n, 5000) {
						t.Errorf("slab %d is not there", n)
					}
				}
				s := k.stats()
				if index && !test.lost && s.Damaged == 0 || s.Damaged > 1 || s.Fault != nil && !test.lost {
					t.Errorf("%+v", s)
				}
			})
		}
	}
}

// Any rank and step is as good as another, and none is taken for another.
func TestAnyRankAndStep(t *testing.T) {
	dir := t.TempDir()
	var keys []disks.Key
	for _, rank := range []uint64{0, 7, 1<<32 + 7, math.MaxUint32, math.MaxUint64} {
		for _, step := range []uint64{0, 7, 1<<32 + 7, math.MaxUint64} {
			keys = append(keys, disks.Key{Series: [16]byte{9}, Rank: rank, Step: step})
		}
	}
	for _, index := range []bool{false, true} {
		k := start(t, one(dir, 1<<20))
		for _, key := range keys {
			if !index {
				must(t, k.Put(key, content(key, 5000), nil))
			}
			s, err := k.Open(key)
			if err != nil || s == nil {
				t.Fatalf("%+v: %v", key, err)
			}
			compare(t, s, key, 5000)
			s.Release()
		}
		if n := k.Holdings()[[16]byte{9}].Slabs; n != len(keys) || len(k.Keys([16]byte{9})) != n {
			t.Errorf("%d slabs, want %d", n, len(keys))
		}
		k.stop()
	}
	k := start(t, one(dir, 1<<20))
	for n, key := range keys {
		if k.Drop(key); k.Has(key) {
			t.Errorf("%+v is still there", key)
		}
		if s := k.stats(); s.Slabs != len(keys)-n-1 {
			t.Errorf("%d slabs after %d of %d", s.Slabs, n+1, len(keys))
		}
	}
}

// What is asked of a tier that was closed is answered as if nothing were there.
func TestAfterClose(t *testing.T) {
	k := start(t, one(t.TempDir(), 20<<10))
	k.putAll(0, 2, 5000)
	k.stop()
	if k.Drop(key(0)); k.Has(key(0)) || k.got(1, 5000) {
		t.Errorf("%+v", k.stats())
	}
}

// What is not ours is let be, and neither read nor counted.
func TestForeignFiles(t *testing.T) {
	dir := filled(t, 3)
	must(t, os.Mkdir(dir+"/copies", 0o700))
	files := []string{"mine", ".hidden", "x.slab", strings.Repeat("0", 32) + "-1-2-3-4.slab",
		strings.Repeat("0", 32) + "-01-2-5-0000000000000000.slab", "copies/a.slab"}
	for _, name := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("mine!"), 0o600))
	}
	must(t, os.WriteFile(dir+"/.part-99", []byte("half"), 0o600))
	must(t, os.Remove(dir+"/.index"))
	k := start(t, one(dir, 20<<10))
	k.putAll(10, 30, 5000)
	k.stop()
	for _, name := range files {
		if b, err := os.ReadFile(filepath.Join(dir, name)); string(b) != "mine!" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if _, err := os.Stat(dir + "/.part-99"); err == nil {
		t.Error("what a crash left unfinished is still there")
	}
}

// The index is written by and by, not only at the end.
func TestIndexBeforeTheEnd(t *testing.T) {
	dir := t.TempDir()
	c := one(dir, 1<<20)
	c.Save = 10 * time.Millisecond
	k := start(t, c)
	k.put(1, 5000)
	eventually.True(t, "there is an index", func() bool { _, err := os.Stat(dir + "/.index"); return err == nil })
	eventually.True(t, "it counts", func() bool { return k.stats().Used == diskUsage(t, dir) && k.stats().Used > 8192 })
}

// A slab of this daemon is hashed again when it has left the page cache.
func TestHashedAgain(t *testing.T) {
	dir := t.TempDir()
	c := one(dir, 1<<20)
	c.Trust = 1
	k := start(t, c)
	k.put(1, 300<<10)
	k.got(1, 300<<10)
	if n := k.stats().Hashed; n != 0 {
		t.Errorf("hashed %d times though it is in memory", n)
	}
	drop := func() {
		f, err := os.Open(slabs(t, dir)[0])
		must(t, err)
		defer f.Close()
		must(t, unix.Fsync(int(f.Fd())))
		must(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	}
	drop()
	if !k.got(1, 300<<10) || k.stats().Hashed != 1 {
		t.Errorf("%+v", k.stats())
	}
	flip(t, slabs(t, dir)[0], 200<<10)
	drop()
	if k.got(1, 300<<10) || k.stats().Damaged != 1 {
		t.Errorf("%+v", k.stats())
	}
	k.put(1, 300<<10)
	if !k.got(1, 300<<10) || k.stats().Used != diskUsage(t, dir) {
		t.Errorf("%+v", k.stats())
	}
}

// A process that writes to a slab while a daemon has it open is found out as well.
func TestChangedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	k := start(t, one(dir, 1<<20))
	k.put(1, 300<<10)
	k.put(2, 300<<10)
	held := k.hold(2)
	for _, path := range slabs(t, dir) {
		before, err := os.Stat(path)
		must(t, err)
		flip(t, path, 200<<10)
		must(t, os.Chtimes(path, before.ModTime(), before.ModTime()))
	}
	if k.got(1, 300<<10) || k.got(2, 300<<10) || k.stats().Damaged != 2 {
		t.Errorf("%+v", k.stats())
	}
	held.Release()
	k.put(1, 300<<10)
	if !k.got(1, 300<<10) || k.stats().Hashed != 0 || k.stats().Used != diskUsage(t, dir) {
		t.Errorf("%+v", k.stats())
	}
}

// oldName is what the first version called a slab.
func oldName(k disks.Key, b []byte) string {
	return fmt.Sprintf("%x-%d-%d-%d-%016x.slab", k.Series, k.Rank, k.Step, len(b), xxhash.Sum64(b))
}

// A directory of the first version, which had no index and summed bytes alone,
// is understood, and is checked as it was then.
func TestFirstVersion(t *testing.T) {
	dir := t.TempDir()
	for n := range 10 {
		b := content(key(n), 5000)
		must(t, os.WriteFile(filepath.Join(dir, oldName(key(n), b)), b, 0o600))
	}
	must(t, os.WriteFile(dir+"/.part-7", []byte("half"), 0o600))
	must(t, os.WriteFile(dir+"/.lock", nil, 0o600))
	bad := slabs(t, dir)[3]
	flip(t, bad, 77)
	for range 2 { // and then again, with an index
		k := start(t, one(dir, 1<<20))
		there := 0
		for n := range 10 {
			if k.got(n, 5000) {
				there++
			}
		}
		if there != 9 || k.stats().Damaged > 1 || k.log.count("nvme slab discarded") > 1 {
			t.Errorf("%d slabs are there: %+v", there, k.stats())
		}
		k.put(20, 5000)
		if _, err := os.Stat(dir + "/.part-7"); err == nil || k.stats().Used != diskUsage(t, dir) {
			t.Errorf("what a crash left counts: %+v", k.stats())
		}
		k.stop()
	}
}

package blobs_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"rankfs/cache"
	"rankfs/cache/blobs"
	"rankfs/cache/disks"
	"rankfs/meta"
)

// open starts a cache with directories of so many bytes, and returns the store of
// the blobs in them.
func open(t *testing.T, dirs ...disks.Dir) (*cache.Cache, *blobs.Store) {
	t.Helper()
	k, err := cache.New(cache.Config{RAMBytes: 16 << 20, NVMe: dirs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k, blobs.New(k, slog.New(slog.DiscardHandler))
}

func key(n byte) string { return strings.Repeat("0", 31) + string('0'+n) }

// write makes a whole blob of the content.
func write(t *testing.T, b *blobs.Blob, content []byte) {
	t.Helper()
	if err := b.Begin(t.Context(), int64(len(content))); err != nil {
		t.Fatal(err)
	}
	put(t, b, content, 0)
	if err := b.Finish(); err != nil {
		t.Fatal(err)
	}
	b.Close()
}

// put writes the granules of the content from the first on.
func put(t *testing.T, b *blobs.Blob, content []byte, first int) {
	t.Helper()
	for i := first; i < blobs.Granules(int64(len(content))); i++ {
		at := i * blobs.Granule
		if err := b.Put(i, content[at:at+int(b.Length(i))]); err != nil {
			t.Fatal(err)
		}
	}
}

// matching are the granules of an open blob that are what was written.
func matching(t *testing.T, b *blobs.Blob, content []byte) (granules []int) {
	t.Helper()
	buf := make([]byte, blobs.Granule)
	for i := range blobs.Granules(int64(len(content))) {
		ok, err := b.Match(i, buf)
		if err != nil {
			t.Fatal(err)
		}
		if at := i * blobs.Granule; ok && !bytes.Equal(buf[:b.Length(i)], content[at:at+int(b.Length(i))]) {
			t.Errorf("granule %d matches with other bytes", i)
		}
		if ok {
			granules = append(granules, i)
		}
	}
	return granules
}

var content = bytes.Repeat([]byte("0123456789abcde\n"), 5<<20/2/16) // two granules and a half

// A blob goes to a directory with room for it, is found there by the next process,
// and gives its room back when it is removed.
func TestPlace(t *testing.T) {
	small, large := t.TempDir(), t.TempDir()
	dirs := []disks.Dir{{Path: small, Bytes: 2 << 20}, {Path: large, Bytes: 8 << 20}}
	k, s := open(t, dirs...)
	one, two := s.Blob(key(1)), s.Blob(key(2))
	write(t, one, content)
	write(t, two, content)
	if got, want := one.Path(), filepath.Join(large, "copies", key(1)+".mdb"); got != want {
		t.Errorf("it is at %s, want %s", got, want)
	}
	if n := k.Stats().NVMe[1].Others; n < 2*int64(len(content)) || k.Stats().NVMe[0].Others != 0 {
		t.Errorf("%+v", k.Stats().NVMe)
	}
	if err := s.Blob(key(3)).Begin(t.Context(), 4<<20); !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("one that no directory has room for: %v", err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}

	k, s = open(t, dirs...)
	found, err := s.List()
	if err != nil || len(found) != 2 {
		t.Fatalf("found %v, %v", found, err)
	}
	for _, b := range found {
		if err := b.Adopt(t.Context()); err != nil || !b.Whole() {
			t.Fatal(b.Key(), err)
		}
		if err := b.Open(t.Context(), int64(len(content))); err != nil {
			t.Fatal(err)
		}
		if got := matching(t, b, content); len(got) != 3 {
			t.Errorf("granules %v are as they were written", got)
		}
		b.Close()
		b.Remove()
	}
	left, err := os.ReadDir(large + "/copies")
	if err != nil || len(left) > 0 || k.Stats().NVMe[1].Others != 0 {
		t.Errorf("left: %v, %v, %+v", left, err, k.Stats().NVMe[1])
	}
}

// What the release before wrote, in the first directory, is found where it is, be
// it whole or not, though another directory has more room.
func TestReleaseBefore(t *testing.T) {
	for _, test := range []struct {
		kind string
		sums int // granules that are there
		want []int
	}{{"mdb", 3, []int{0, 1, 2}}, {"part", 1, []int{0}}} {
		t.Run(test.kind, func(t *testing.T) {
			first, second := t.TempDir(), t.TempDir()
			sums := make([]byte, 3*8)
			for i := range test.sums {
				end := min((i+1)<<20, len(content))
				binary.LittleEndian.PutUint64(sums[8*i:], xxhash.Sum64(content[i<<20:end]))
			}
			path := filepath.Join(first, "copies", key(1))
			err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
				os.WriteFile(path+"."+test.kind, content, 0o600), os.WriteFile(path+".sums", sums, 0o600))
			if err != nil {
				t.Fatal(err)
			}
			k, s := open(t, disks.Dir{Path: first, Bytes: 8 << 20}, disks.Dir{Path: second, Bytes: 64 << 20})
			b := s.Blob(key(1))
			if err = b.Open(t.Context(), int64(len(content))); test.kind == "part" && errors.Is(err, os.ErrNotExist) {
				err = b.Begin(t.Context(), int64(len(content)))
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := matching(t, b, content); !slices.Equal(got, test.want) {
				t.Errorf("granules %v are there, want %v", got, test.want)
			}
			if s := k.Stats().NVMe; s[0].Others < int64(len(content)) || s[1].Others != 0 {
				t.Errorf("%+v", s)
			}
			b.Close()
			b.Remove()
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// A blob that is not as it was written is removed, in a directory that is not the
// first too; and of two for one key one is.
func TestNoneIsLeaked(t *testing.T) {
	dirs := []disks.Dir{{Path: t.TempDir(), Bytes: 8 << 20}, {Path: t.TempDir(), Bytes: 64 << 20}}
	k, s := open(t, dirs...)
	write(t, s.Blob(key(1)), content)
	write(t, s.Blob(key(2)), content)
	at := func(dir int, name string) string { return filepath.Join(dirs[dir].Path, "copies", name) }
	err := errors.Join(k.Close(), os.Remove(at(1, key(1)+".sums")), os.Mkdir(at(0, ""), 0o700),
		os.WriteFile(at(0, key(2)+".part"), content, 0o600))
	if err != nil {
		t.Fatal(err)
	}

	_, s = open(t, dirs...)
	found, err := s.List()
	if err != nil || len(found) != 2 {
		t.Fatalf("found %v, %v", found, err)
	}
	for _, b := range found {
		if err := b.Adopt(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := b.Open(t.Context(), int64(len(content)))
		if damaged := b.Key() == key(1); damaged != errors.Is(err, os.ErrNotExist) || damaged == b.Counted() {
			t.Errorf("%s: %v", b.Key(), err)
		}
		b.Close()
	}
	var left []string
	for dir := range dirs {
		names, _ := filepath.Glob(at(dir, "*"))
		left = append(left, names...)
	}
	if want := []string{at(1, key(2)+".mdb"), at(1, key(2)+".sums")}; !slices.Equal(left, want) {
		t.Errorf("left: %v, want %v", left, want)
	}
}

package blobs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"rankfs/cache/blobs"
	"rankfs/cache/disks"
	"rankfs/meta"
	"rankfs/test/eventually"
)

// A room is directories without a cache.
type room struct {
	*disks.Tier
	reserving func() // called before bytes are reserved; may be nil
}

func (r *room) Reserve(_ context.Context, bytes int64, in string) (*disks.Reservation, error) {
	if r.reserving != nil {
		r.reserving()
	}
	c, err := r.Tier.Reserve(bytes, in)
	if err == nil && !c.Charge() {
		c.Release()
		return nil, meta.ErrNoSpace
	}
	return c, err
}

func (r *room) others(dir int) int64 { return r.Stats()[dir].Others }

// open opens directories of so many bytes, and returns the store of the blobs in them.
func open(t *testing.T, dirs ...disks.Dir) (*room, *blobs.Store) {
	t.Helper()
	tier, err := disks.New(disks.Config{Dirs: dirs, Suspend: 20 * time.Millisecond, Save: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r := &room{Tier: tier}
	s := blobs.New(blobs.Config{Room: r, Folder: "copies", Suffix: "mdb", Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { shut(t, r, s) })
	return r, s
}

func shut(t *testing.T, r *room, s *blobs.Store) {
	t.Helper()
	s.Close()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func key(n byte) string { return strings.Repeat("0", 31) + string('0'+n) }

func wanted(keys ...string) map[string]bool {
	all := make(map[string]bool)
	for _, k := range keys {
		all[k] = true
	}
	return all
}

var content = bytes.Repeat([]byte("0123456789abcde\n"), 5<<20/2/16) // two granules and a half

// granule is one of the content's.
func granule(i int) []byte { return content[i<<20 : min((i+1)<<20, len(content))] }

// maker writes so many granules of the content, and fails if that is not all. It notes
// those that were there.
func maker(most int, there *[]int) blobs.Maker {
	return func(ctx context.Context, b *blobs.Blob) error {
		if err := b.Begin(ctx); err != nil {
			return err
		}
		for i := range 3 {
			match, err := b.Match(i)
			if match {
				*there = append(*there, i)
			}
			if err == nil && !match && i < most {
				err = b.Put(i, granule(i))
			}
			if err != nil {
				return err
			}
		}
		if most < 3 {
			return errInterrupted
		}
		return nil
	}
}

var errInterrupted = errors.New("interrupted")

// none fails: there is to be a blob.
func none(context.Context, *blobs.Blob) error { return errors.New("it is made anew") }

// take takes a blob of the content.
func take(t *testing.T, s *blobs.Store, key string, make blobs.Maker) *blobs.Blob {
	t.Helper()
	b, err := s.Take(t.Context(), key, int64(len(content)), make, func(int64) {})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// check fails the test unless granules of a blob are right without being fetched, as an
// earlier process wrote them, and so is what is read.
func check(t *testing.T, b *blobs.Blob) {
	t.Helper()
	got := make([]byte, len(content))
	for i := range 3 {
		if err := b.Prove(t.Context(), i, func([]byte) error { return errors.New("it is fetched again") }); err != nil || !b.Proven(i) {
			t.Errorf("granule %d: %v", i, err)
		}
	}
	if _, err := b.File().ReadAt(got, 0); err != nil || !bytes.Equal(got, content) {
		t.Errorf("other bytes: %v", err)
	}
}

// leave puts the files of a blob where an earlier process left them, with so many sums.
func leave(t *testing.T, dir, key, kind string, sums int) {
	t.Helper()
	b := make([]byte, 3*8)
	for i := range sums {
		binary.LittleEndian.PutUint64(b[8*i:], xxhash.Sum64(granule(i)))
	}
	path := filepath.Join(dir, "copies", key)
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
		os.WriteFile(path+"."+kind, content, 0o600), os.WriteFile(path+".sums", b, 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

// left are the files of blobs in directories.
func left(t *testing.T, dirs ...string) (names []string) {
	t.Helper()
	for _, dir := range dirs {
		some, err := filepath.Glob(dir + "/copies/*")
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, some...)
	}
	return names
}

// A blob goes to a directory with room for it, is found there by the next process,
// and gives its room back when it is removed.
func TestPlace(t *testing.T) {
	small, large := t.TempDir(), t.TempDir()
	dirs := []disks.Dir{{Path: small, Bytes: 2 << 20}, {Path: large, Bytes: 8 << 20}}
	r, s := open(t, dirs...)
	for n := range byte(2) {
		b := take(t, s, key(n), maker(3, nil))
		if name := filepath.Join(large, "copies", key(n)+".mdb"); !slices.Contains(left(t, large), name) {
			t.Errorf("%s is not among %v", name, left(t, small, large))
		}
		b.Release()
	}
	if n := r.others(1); n < 2*int64(len(content)) || r.others(0) != 0 {
		t.Errorf("%+v", r.Stats())
	}
	_, err := s.Take(t.Context(), key(3), 4<<20, maker(3, nil), func(int64) {})
	if !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("one that no directory has room for: %v", err)
	}
	shut(t, r, s)

	r, s = open(t, dirs...)
	s.Retain(wanted(key(0), key(1)))
	if n := r.others(1); n < 2*int64(len(content)) {
		t.Errorf("%d bytes are counted of two that were found", n)
	}
	for n := range byte(2) {
		b := take(t, s, key(n), none)
		check(t, b)
		b.Release()
	}
	s.Retain(nil)
	if names := left(t, small, large); len(names) > 0 || r.others(1) != 0 {
		t.Errorf("left: %v, %+v", names, r.Stats())
	}
}

// What the release before wrote, in the first directory, is found where it is, be
// it whole or not, though another directory has more room.
func TestReleaseBefore(t *testing.T) {
	for _, test := range []struct {
		kind string
		sums int // granules that are there
	}{{"mdb", 3}, {"part", 1}} {
		t.Run(test.kind, func(t *testing.T) {
			first, second := t.TempDir(), t.TempDir()
			leave(t, first, key(1), test.kind, test.sums)
			r, s := open(t, disks.Dir{Path: first, Bytes: 8 << 20}, disks.Dir{Path: second, Bytes: 64 << 20})
			var there []int
			make := none
			if test.kind == "part" {
				make = maker(3, &there)
			}
			b := take(t, s, key(1), make)
			if test.kind == "part" && !slices.Equal(there, []int{0}) {
				t.Errorf("granules %v are there, want the first", there)
			}
			check(t, b)
			if r.others(0) < int64(len(content)) || r.others(1) != 0 {
				t.Errorf("%+v", r.Stats())
			}
			b.Release()
			s.Retain(nil)
			if names := left(t, first, second); len(names) > 0 {
				t.Errorf("left: %v", names)
			}
		})
	}
}

// A blob that is not as it was written is removed, in a directory that is not the
// first too; and of two for one key one is.
func TestNoneIsLeaked(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	leave(t, b, key(1), "mdb", 3)
	leave(t, b, key(2), "mdb", 3)
	leave(t, a, key(2), "part", 1)
	if err := os.Remove(b + "/copies/" + key(1) + ".sums"); err != nil {
		t.Fatal(err)
	}
	r, s := open(t, disks.Dir{Path: a, Bytes: 8 << 20}, disks.Dir{Path: b, Bytes: 64 << 20})
	s.Retain(wanted(key(1), key(2)))
	_, err := s.Take(t.Context(), key(1), int64(len(content)), func(context.Context, *blobs.Blob) error { return errInterrupted }, func(int64) {})
	if !errors.Is(err, errInterrupted) {
		t.Errorf("one without sums: %v", err)
	}
	whole := take(t, s, key(2), none)
	check(t, whole)
	whole.Release()
	if names, want := left(t, a, b), []string{b + "/copies/" + key(2) + ".mdb", b + "/copies/" + key(2) + ".sums"}; !slices.Equal(names, want) {
		t.Errorf("left: %v, want %v", names, want)
	}
	if r.others(0) != 0 || r.others(1) > 3<<20 {
		t.Errorf("%+v", r.Stats())
	}
}

// A granule that the disk lost is fetched again, and only that.
func TestMend(t *testing.T) {
	dir := t.TempDir()
	leave(t, dir, key(1), "mdb", 3)
	name := dir + "/copies/" + key(1) + ".mdb"
	damaged := bytes.Clone(content)
	damaged[1<<20+5]++
	if err := os.WriteFile(name, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	_, s := open(t, disks.Dir{Path: dir, Bytes: 8 << 20})
	b := take(t, s, key(1), none)
	defer b.Release()
	var fetched []int
	for i := range 3 {
		err := b.Prove(t.Context(), i, func(to []byte) error {
			fetched = append(fetched, i)
			copy(to, granule(i))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	check(t, b)
	if !slices.Equal(fetched, []int{1}) {
		t.Errorf("granules %v are fetched again, want the second", fetched)
	}
}

// While a blob is made, a user that does not wait is told how far it is, and it is made
// even if no user waits. It stays while it is used, and goes with its last user.
func TestUse(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, disks.Dir{Path: dir, Bytes: 8 << 20})
	s.Retain(nil)
	begin := make(chan struct{})
	slow := func(ctx context.Context, b *blobs.Blob) error {
		if err := errors.Join(b.Begin(ctx), b.Put(0, granule(0))); err != nil {
			return err
		}
		<-begin
		return errors.Join(b.Put(1, granule(1)), b.Put(2, granule(2)))
	}
	size := int64(len(content))
	eventually.True(t, "it is half made", func() bool {
		_, err := s.Take(t.Context(), key(1), size, slow, nil)
		if !errors.Is(err, meta.ErrBusy) {
			t.Fatalf("while it is made: %v", err)
		}
		return strings.Contains(err.Error(), "1048576 of 2621440 bytes")
	})
	close(begin)
	one, two := take(t, s, key(1), none), take(t, s, key(1), none)
	s.Retain(nil)
	one.Release()
	check(t, two)
	two.Release()
	if names := left(t, dir); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}

// An interrupted blob is gone on with, for a day, and makes way for one that is found,
// or made.
func TestInterruptedMakesWay(t *testing.T) {
	for _, test := range []struct {
		name string
		make blobs.Maker
	}{{"made", maker(3, nil)}, {"found", none}} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			r, s := open(t, disks.Dir{Path: dir, Bytes: 4 << 20})
			s.Retain(nil)
			size := int64(len(content))
			if _, err := s.Take(t.Context(), key(1), size, maker(1, nil), func(int64) {}); !errors.Is(err, errInterrupted) {
				t.Fatal(err)
			}
			s.Retain(nil)
			if names := left(t, dir); len(names) != 2 || r.others(0) < size {
				t.Fatalf("there is %v of what was interrupted", names)
			}
			if test.name == "found" {
				leave(t, dir, key(2), "mdb", 3)
			}
			b := take(t, s, key(2), test.make)
			check(t, b)
			if names := left(t, dir); len(names) != 2 || !strings.Contains(names[0], key(2)) {
				t.Errorf("left: %v", names)
			}
			b.Release()
		})
	}
}

// An interrupted blob whose directory has no room for it any more is made in another.
func TestInterruptedMovesOn(t *testing.T) {
	small, large := t.TempDir(), t.TempDir()
	leave(t, small, key(1), "part", 1)
	r, s := open(t, disks.Dir{Path: small, Bytes: 2 << 20}, disks.Dir{Path: large, Bytes: 8 << 20})
	b := take(t, s, key(1), maker(3, nil))
	check(t, b)
	b.Release()
	if names := left(t, small); len(names) > 0 || len(left(t, large)) != 2 || r.others(0) != 0 {
		t.Errorf("left: %v, %v, %+v", names, left(t, large), r.Stats())
	}
}

// A blob that is not wanted any more goes when its disk is back, if that could not be read
// meanwhile.
func TestUnwantedOnADiskThatIsBack(t *testing.T) {
	top := t.TempDir()
	dir, away := top+"/dir", top+"/away"
	if err := os.Mkdir(away, 0o700); err != nil {
		t.Fatal(err)
	}
	r, s := open(t, disks.Dir{Path: dir, Bytes: 8 << 20}, disks.Dir{Path: t.TempDir(), Bytes: 3 << 20})
	s.Retain(nil)
	swap := func() {
		t.Helper()
		if err := unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, away, unix.RENAME_EXCHANGE); err != nil {
			t.Fatal(err)
		}
	}
	s.Retain(wanted(key(1)))
	take(t, s, key(1), maker(3, nil)).Release()
	swap()
	eventually.True(t, "it is missed", func() bool {
		return !slices.ContainsFunc(r.Folders("copies"), func(f *disks.Folder) bool { return f.Has(key(1) + ".mdb") })
	})
	s.Retain(nil)
	if names := left(t, away); len(names) != 2 || r.others(0) != 0 {
		t.Fatalf("there is %v of one that is away, %+v", names, r.Stats())
	}
	swap()
	eventually.True(t, "it is gone", func() bool { s.Retain(nil); return len(left(t, dir)) == 0 })
	if r.others(0) != 0 {
		t.Errorf("%+v", r.Stats())
	}
}

// A blob that is asked for while it is being adopted is one, and counts once.
func TestTakenWhileAdopted(t *testing.T) {
	dir := t.TempDir()
	leave(t, dir, key(1), "mdb", 3)
	r, s := open(t, disks.Dir{Path: dir, Bytes: 8 << 20})
	taken := make(chan *blobs.Blob, 1)
	r.reserving = func() {
		r.reserving = nil
		go func() {
			b, err := s.Take(t.Context(), key(1), int64(len(content)), none, func(int64) {})
			if err != nil {
				t.Error(err)
			}
			taken <- b
		}()
		time.Sleep(20 * time.Millisecond) // or it is taken afterwards, as it may be
	}
	s.Retain(wanted(key(1)))
	b := <-taken
	if b == nil {
		return
	}
	check(t, b)
	if n := r.others(0); n > 3<<20 {
		t.Errorf("%d bytes are counted", n)
	}
	b.Release()
	s.Retain(nil)
	if r.others(0) != 0 || len(left(t, dir)) > 0 {
		t.Errorf("left: %v, %+v", left(t, dir), r.Stats())
	}
}

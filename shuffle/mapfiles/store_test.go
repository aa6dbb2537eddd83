package mapfiles

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/access"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/memory"
	"rankfs/shuffle/pieces"
)

// onDisk are files of a job with a disk of so many bytes, and with a directory in the place
// of memory.
func onDisk(t *testing.T, bytes int64, log *slog.Logger) *Files {
	t.Helper()
	return onDiskOf(t, bytes, 1<<30, log)
}

// onDiskOf is onDisk with so many bytes of memory.
func onDiskOf(t *testing.T, bytes, ram int64, log *slog.Logger) *Files {
	t.Helper()
	d, err := disk.Open(t.TempDir(), bytes, "00000000000000aa", filepath.Join(t.TempDir(), "note"), log)
	if err != nil {
		t.Fatal(err)
	}
	root, err := d.Job(7)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	used := new(access.Names)
	used.Init(0)
	f := New(dir, memory.New(ram, nil, log), used)
	f.AddDisk(d, root)
	t.Cleanup(func() {
		if err := errors.Join(f.Close(), dir.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	})
	return f
}

// A file takes whole blocks of the disk.
var block = disk.Blocks(1)

// filesOf is what files on a disk take, and what is counted of that.
func filesOf(t *testing.T, s *Store) (left, counted int64) {
	t.Helper()
	err := fs.WalkDir(s.root.FS(), ".", func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			left += disk.Blocks(info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	counted, _ = s.disk.Room()
	return left, counted
}

func mapOfBytes(t *testing.T, b string) (string, state.Commit, pieces.Table) {
	t.Helper()
	all := pieces.AppendRow(nil, int64(len(b)), xxhash.Sum64String(b))
	c := state.Commit{Map: 3, Writer: "00000000000000bb", Size: int64(len(b)), Sum: all.Sum()}
	return Path(9, c), c, all
}

// Of two copies that come at once into memory the second is refused before anything of it is
// read, if there is no room for it beside all of the first, and taken once that has failed.
func TestCopiesThatComeAtOnce(t *testing.T) {
	b := strings.Repeat("0123456789abcdef", 4096)
	room := int64(len(b)) * 3 / 2
	f := onDiskOf(t, 0, room, slog.New(slog.DiscardHandler))
	name, _, all := mapOfBytes(t, b)
	r, w := io.Pipe()
	first := make(chan error, 1)
	go func() { first <- f.Take(t.Context(), false, name, all, r) }()
	if _, err := io.WriteString(w, b[:100]); err != nil {
		t.Fatal(err)
	}
	second := strings.NewReader(b)
	if err := f.Take(t.Context(), false, name, all, second); !errors.Is(err, meta.ErrNoSpace) || second.Len() < len(b) {
		t.Errorf("the second copy: %v; %d bytes of it were not read", err, second.Len())
	}
	if err := f.Room(false, int64(len(b))); !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("while one comes there is room for another one: %v", err)
	}
	w.CloseWithError(io.ErrUnexpectedEOF)
	if err := <-first; !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the first copy: %v", err)
	}
	if err := f.Take(t.Context(), false, name, all, second); err != nil {
		t.Errorf("the second copy, when the first has failed: %v", err)
	}
	if n := room - f.memory.ram.Free(); n != 0 {
		t.Errorf("%d bytes are to come still", n)
	}
}

// Two copies of a map that come at once do not write into one file: the one that is whole
// first is, while the other one is half. Their room is counted once, and none is left when
// the job is gone.
func TestTwoCopiesAtOnce(t *testing.T) {
	f := onDisk(t, 1<<20, slog.New(slog.DiscardHandler))
	b := strings.Repeat("0123456789abcdef", 4096)
	name, c, all := mapOfBytes(t, b)
	type coming struct {
		*io.PipeWriter
		err chan error
	}
	begin := func() coming {
		r, w := io.Pipe()
		one := coming{w, make(chan error, 1)}
		go func() { one.err <- f.Take(t.Context(), true, name, all, r) }()
		if _, err := io.WriteString(w, b[:100]); err != nil {
			t.Fatal(err)
		}
		return one
	}
	end := func(one coming) {
		t.Helper()
		if _, err := io.WriteString(one, b[100:]); err != nil {
			t.Fatal(err)
		}
		one.Close()
		if err := <-one.err; err != nil {
			t.Error(err)
		}
		if err := f.Verify(9, c); err != nil {
			t.Errorf("when one is whole: %v", err)
		}
	}
	defer f.memory.used.Expect(name)()
	first, second := begin(), begin()
	if !f.Lacks(t.Context(), 9, c) {
		t.Error("a copy has its name before it is whole")
	}
	for _, s := range f.Stores() {
		names, err := meta.NamesIn(s.root, "9/maps")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			f.Sweep(s, 9, names).GiveUp(name) // which leaves what comes
		}
	}
	end(first)
	end(second)
	if left, counted := filesOf(t, f.disk); left != counted || counted != disk.Blocks(int64(len(b)))+block {
		t.Errorf("%d bytes are there, %d counted", left, counted)
	}
	f.Drop(name)
	if left, counted := filesOf(t, f.disk); left != 0 || counted != 0 {
		t.Errorf("%d bytes are left, %d counted", left, counted)
	}
}

// A disk whose directory is gone is known to be once something could not be written there: then
// memory has what comes, and the disk again when the directory is back.
func TestADirectoryThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := onDisk(t, 1<<20, slog.New(slog.DiscardHandler))
		dir := filepath.Dir(f.disk.root.Name())
		name, c, all := mapOfBytes(t, "words")
		take := func() error { return f.Take(t.Context(), false, name, all, strings.NewReader("words")) }
		if err := os.Rename(dir, dir+"-away"); err != nil {
			t.Fatal(err)
		}
		if err := take(); !errors.Is(err, disk.ErrGone) || errors.Is(err, os.ErrNotExist) {
			t.Errorf("written where there is no directory it is %v, want one that tells of the disk", err)
		}
		if err := take(); err != nil || f.Verify(9, c) != nil {
			t.Errorf("memory has it not: %v", err)
		}
		if err := os.Rename(dir+"-away", dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(disk.SuspendTime)
		f.Drop(name)
		if err := take(); err != nil || f.Verify(9, c) != nil {
			t.Errorf("the directory is back: %v", err)
		}
		if left, counted := filesOf(t, f.disk); left != 2*block || counted != left {
			t.Errorf("%d bytes are there, %d counted", left, counted)
		}
	})
}

// So is one whose directory was removed, with all that was in it.
func TestADirectoryThatIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := onDisk(t, 1<<20, slog.New(slog.DiscardHandler))
		if err := os.RemoveAll(filepath.Dir(f.disk.root.Name())); err != nil {
			t.Fatal(err)
		}
		name, c, all := mapOfBytes(t, "words")
		if err := f.Take(t.Context(), true, name, all, strings.NewReader("words")); !errors.Is(err, disk.ErrGone) || errors.Is(err, os.ErrNotExist) {
			t.Errorf("written where there is no directory it is %v, want one that tells of the disk", err)
		}
		if err := f.Take(t.Context(), true, name, all, strings.NewReader("words")); !errors.Is(err, meta.ErrNoSpace) {
			t.Errorf("while the disk is left alone: %v", err)
		}
		if err := f.Take(t.Context(), false, name, all, strings.NewReader("words")); err != nil || f.Verify(9, c) != nil {
			t.Errorf("memory has it not: %v", err)
		}
		if _, err := f.Tails.At(9, TailName{Map: 1, Writer: "00000000000000bb"}, 0); !errors.Is(err, meta.ErrNoSpace) {
			t.Errorf("what comes ahead of a commit: %v", err)
		}
	})
}

// Of a stage that is removed while a map comes nothing is counted any more: neither what the removal
// found of the file, twice, nor what came after.
func TestAStageIsRemovedAmidACopy(t *testing.T) {
	for _, lasting := range []bool{false, true} {
		f := onDisk(t, 1<<30, slog.New(slog.DiscardHandler))
		b := strings.Repeat("0123456789abcdef", 1<<16)
		name, _, all := mapOfBytes(t, b)
		r, w := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- f.Take(t.Context(), lasting, name, all, r) }()
		if _, err := io.WriteString(w, b[:len(b)/2]); err != nil {
			t.Fatal(err)
		}
		if err := f.disk.RemoveAll("9"); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.WriteString(w, b[len(b)/2:])
			w.Close()
		}()
		if err := <-done; err == nil {
			t.Error("it is kept where no stage is any more")
		}
		if left, counted := filesOf(t, f.disk); left != 0 || counted != 0 {
			t.Errorf("to last %v: %d bytes are left, and %d counted", lasting, left, counted)
		}
	}
}

// A disk that has no room, or that has failed, takes nothing: memory does, but for what has
// to last. What fails leaves nothing.
func TestFullOrFailedDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := onDisk(t, 2*block, slog.New(slog.NewTextHandler(&log, nil)))
		b := strings.Repeat("x", int(3*block))
		name, c, all := mapOfBytes(t, b)
		if err := f.Take(t.Context(), true, name, all, strings.NewReader(b)); !errors.Is(err, meta.ErrNoSpace) || !f.Lacks(t.Context(), 9, c) {
			t.Errorf("more than there is room for: %v", err)
		}
		if left, counted := filesOf(t, f.disk); left != 0 || counted != 0 {
			t.Errorf("of a map that there was no room for %d bytes are left, %d counted", left, counted)
		}
		if err := f.Take(t.Context(), false, name, all, strings.NewReader(b)); err != nil || f.Verify(9, c) != nil {
			t.Errorf("what memory has room for: %v", err)
		}
		if err := f.Take(t.Context(), false, name, all, bytes.NewReader([]byte(strings.Repeat("y", int(3*block))))); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("other bytes: %v", err)
		}
		f.Drop(name)
		small := b[:10]
		name, c, all = mapOfBytes(t, small)
		f.disk.disk.Failed(unix.EIO)
		f.disk.disk.Failed(unix.EIO)
		if n := strings.Count(log.String(), "pool-nvme directory suspended"); n != 1 {
			t.Errorf("that the disk failed is logged %d times", n)
		}
		if err := f.Take(t.Context(), true, name, all, strings.NewReader(small)); !errors.Is(err, meta.ErrNoSpace) {
			t.Errorf("a disk that failed: %v", err)
		}
		time.Sleep(disk.SuspendTime)
		if err := f.Take(t.Context(), true, name, all, strings.NewReader(small)); err != nil || f.Verify(9, c) != nil {
			t.Errorf("a disk that had failed: %v", err)
		}
		f.Drop(name)
		if left, counted := filesOf(t, f.disk); counted != left {
			t.Errorf("%d bytes are left, %d counted", left, counted)
		}
	})
}

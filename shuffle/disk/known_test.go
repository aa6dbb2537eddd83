package disk

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

const self = "00000000000000aa"

// A directory that is not the one which the node has noted is refused, with what to do, and nothing is
// made there: where nothing is, where an empty one is, as on a disk that is not mounted, and where another
// daemon has been without its disk before. The one that is noted is opened, also at another path. So it is
// the second time.
func TestADirectoryThatIsNotTheOneOfTheNote(t *testing.T) {
	dir := t.TempDir()
	at, away, note := filepath.Join(dir, "disk"), filepath.Join(dir, "away"), filepath.Join(dir, "note")
	opens(t, at, note)
	for range 2 {
		must(t, os.Rename(at, away))
		refused(t, at, note)
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it was refused, and is there: %v", err)
		}
		must(t, os.Mkdir(at, 0o700))
		refused(t, at, note)
		if left := allBelow(t, at); len(left) > 0 {
			t.Errorf("it was refused, and has %q", left)
		}
		releaseBefore(t, at)
		was := allBelow(t, at)
		refused(t, at, note)
		if left := allBelow(t, at); !slices.Equal(left, was) {
			t.Errorf("it was refused, and has %q, and not %q", left, was)
		}
		opens(t, away, note)
		must(t, os.RemoveAll(at), os.Rename(away, at))
		opens(t, at, note)
	}
	must(t, os.WriteFile(note, nil, 0o600)) // damaged: it is of no place
	refused(t, at, note)
	must(t, os.RemoveAll(filepath.Join(at, "pool-"+self)))
	refused(t, at, note)
	must(t, os.Remove(note))
	opens(t, at, note)
	opens(t, at, note)
}

// A directory of the release before, which has no mark, is taken as it is, and known from then on; and so
// is one of which the note was lost. One that cannot be noted is used, and the log says that it is not known.
func TestADirectoryWithoutANote(t *testing.T) {
	dir := t.TempDir()
	at, note := filepath.Join(dir, "disk"), filepath.Join(dir, "note")
	must(t, os.Mkdir(at, 0o700))
	releaseBefore(t, at)
	was := allBelow(t, at)
	opens(t, at, note)
	known := allBelow(t, at)
	if len(known) != len(was)+1 || slices.ContainsFunc(was, func(name string) bool { return !slices.Contains(known, name) }) {
		t.Errorf("of %q there are %q", was, known)
	}
	must(t, os.Remove(note))
	opens(t, at, note)
	if again := allBelow(t, at); !slices.Equal(again, known) {
		t.Errorf("without a note it has %q, and before %q", again, known)
	}
	must(t, os.Rename(at, at+"-away"))
	refused(t, at, note)

	var log bytes.Buffer
	d, err := Open(at, 1<<20, self, filepath.Join(dir, "none", "note"), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || !strings.Contains(log.String(), "may take another directory") {
		t.Fatalf("it cannot be noted: %v\n%s", err, &log)
	}
	must(t, d.Close())
}

// A directory that was opened before is opened while its file system is read-only: what it has is read,
// nothing is written there, and the log says why. It is of one daemon alone then, too, and takes writes
// when that is over; and so it is the second time. One that was never opened is refused meanwhile.
func TestADirectoryThatIsReadOnly(t *testing.T) {
	dir := t.TempDir()
	at, note := filepath.Join(dir, "disk"), filepath.Join(dir, "note")
	must(t, os.Mkdir(at, 0o700), unix.Mount("none", at, "tmpfs", 0, ""))
	defer func() { must(t, unix.Unmount(at, 0)) }()
	turn := func(flags uintptr) {
		t.Helper()
		must(t, unix.Mount("", at, "", unix.MS_REMOUNT|flags, ""))
	}
	open := func(log *bytes.Buffer) (*Disk, error) {
		return Open(at, 1<<20, self, note, slog.New(slog.NewTextHandler(log, nil)))
	}
	turn(unix.MS_RDONLY)
	if _, err := open(new(bytes.Buffer)); !errors.Is(err, unix.EROFS) {
		t.Errorf("it was never opened: %v", err)
	}
	turn(0)
	releaseBefore(t, at)
	opens(t, at, note)
	for range 2 {
		turn(unix.MS_RDONLY)
		var log bytes.Buffer
		d, err := open(&log)
		if err != nil {
			t.Fatal(err)
		}
		if d.Free() != 0 || d.Take(0) || !strings.Contains(log.String(), "pool-nvme directory suspended") || !strings.Contains(log.String(), "read-only") {
			t.Errorf("it is read-only, and %d bytes are free\n%s", d.Free(), &log)
		}
		job, err := d.Job(7)
		must(t, err)
		if got, err := job.ReadFile("1/maps/000000.0.a.b"); string(got) != "words" {
			t.Errorf("a map there is %q: %v", got, err)
		}
		if _, err := open(new(bytes.Buffer)); !errors.Is(err, meta.ErrBusy) {
			t.Errorf("it is opened once more: %v", err)
		}
		must(t, job.Close(), d.Close())
		turn(0)
		log.Reset()
		d, err = open(&log)
		must(t, err)
		if d.Free() == 0 || log.Len() > 0 {
			t.Errorf("it takes writes, and %d bytes are free\n%s", d.Free(), &log)
		}
		must(t, d.Close())
	}
}

// opens holds a directory to being opened, with nothing counted that was not there.
func opens(t *testing.T, at, note string) {
	t.Helper()
	d, err := Open(at, 1<<20, self, note, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	want := int64(0)
	for _, name := range allBelow(t, at) {
		info, err := os.Stat(name)
		must(t, err)
		if info.Mode().IsRegular() {
			want += Blocks(info.Size())
		}
	}
	if used, _ := d.Room(); used != want {
		t.Errorf("of %s %d bytes are used, want %d", at, used, want)
	}
	must(t, d.Close())
}

func refused(t *testing.T, at, note string) {
	t.Helper()
	_, err := Open(at, 1<<20, self, note, slog.New(slog.DiscardHandler))
	for _, words := range []string{at, "mount its disk first", "rm " + note} {
		if !errors.Is(err, meta.ErrNotExist) || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, and not %q", err, words)
		}
	}
}

// releaseBefore makes a place with a map in it as the release before did.
func releaseBefore(t *testing.T, at string) {
	t.Helper()
	maps := filepath.Join(at, "pool-"+self, "7", "1", "maps")
	must(t, os.MkdirAll(maps, 0o700), os.WriteFile(filepath.Join(at, "pool-"+self, ".lock"), nil, 0o600),
		os.WriteFile(filepath.Join(maps, "000000.0.a.b"), []byte("words"), 0o400))
}

func allBelow(t *testing.T, dir string) (names []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if name != dir {
			names = append(names, name)
		}
		return err
	}))
	return names
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

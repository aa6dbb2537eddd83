package durable_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/meta/durable"
)

// writes are WriteFile, and what it does by the other way there is to it.
var writes = map[string]func(path string, data []byte, mode fs.FileMode) error{
	"WriteFile": durable.WriteFile,
	"WriteIn": func(path string, data []byte, mode fs.FileMode) error {
		dir, err := os.OpenRoot(filepath.Dir(path))
		if err != nil {
			return err
		}
		defer dir.Close()
		return durable.WriteIn(dir, filepath.Base(path), data, mode)
	},
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// holds fails the test unless path holds text with a mode, and is alone.
func holds(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	must(t, err)
	info, err := os.Lstat(path)
	must(t, err)
	if string(got) != text || info.Mode() != mode {
		t.Errorf("%d bytes, mode %v; want %d, %v", len(got), info.Mode(), len(text), mode)
	}
	alone(t, path)
}

// alone fails the test if anything is beside path.
func alone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != filepath.Base(path) }) {
		t.Errorf("there are %v", entries)
	}
}

func TestWrite(t *testing.T) {
	defer unix.Umask(unix.Umask(0o022))
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			for _, next := range []struct {
				text string
				mode fs.FileMode
			}{{"first", 0o600}, {strings.Repeat("long", 1<<20), 0o644}, {"", 0o600}, {"short", 0o400}, {"last", 0o600}} {
				must(t, write(path, []byte(next.text), next.mode))
				holds(t, path, next.text, next.mode)
			}
		})
	}
}

// A reader that has the file open reads on in what it was.
func TestWriteWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, durable.WriteFile(path, []byte("before"), 0o600))
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	must(t, durable.WriteFile(path, []byte("now"), 0o600))
	was := make([]byte, 10)
	if n, _ := f.Read(was); string(was[:n]) != "before" {
		t.Errorf("%q is in the file that was open", was[:n])
	}
}

// A file that a crash left half written, or that lies where a new one is to be, is not written to.
func TestWriteAfterCrash(t *testing.T) {
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			path, other := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "other")
			must(t, os.WriteFile(path+".new", bytes.Repeat([]byte("x"), 1000), 0o666))
			must(t, write(path, []byte("text"), 0o600))
			holds(t, path, "text", 0o600)

			must(t, os.WriteFile(other, []byte("other"), 0o644))
			must(t, os.Symlink(other, path+".new"))
			must(t, write(path, []byte("again"), 0o600))
			holds(t, path, "again", 0o600)
			holds(t, other, "other", 0o644)
		})
	}
}

// A file that cannot be written stays as it is, and nothing else is left.
func TestWriteFails(t *testing.T) {
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			must(t, write(path, []byte("before"), 0o600))
			var limit unix.Rlimit
			must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &limit))
			must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4096, Max: limit.Max}))
			err := write(path, make([]byte, 10_000), 0o600)
			must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
			if !errors.Is(err, unix.EFBIG) || !strings.Contains(err.Error(), "file") {
				t.Errorf("%v, want %v, of the file", err, unix.EFBIG)
			}
			holds(t, path, "before", 0o600)
		})
	}
}

func TestWriteOverDirectory(t *testing.T) {
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			must(t, os.Mkdir(path, 0o700))
			if err := write(path, []byte("text"), 0o600); err == nil {
				t.Error("a file is in the place of a directory")
			}
			if _, err := os.ReadDir(path); err != nil {
				t.Error(err)
			}
			alone(t, path)
		})
	}
}

func TestMissingDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	path := filepath.Join(dir, "file")
	if err := durable.WriteFile(path, nil, 0o600); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("WriteFile: %v, want %v, of %s", err, fs.ErrNotExist, path)
	}
	if err := durable.SyncDir(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("SyncDir: %v, want %v", err, fs.ErrNotExist)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "written"))
	must(t, err)
	defer f.Close()
	if err := durable.Rename(f, path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Rename: %v, want %v", err, fs.ErrNotExist)
	}
	alone(t, f.Name())
	if _, err := os.Stat(f.Name()); err != nil {
		t.Error("what could not be renamed is gone")
	}
}

func TestRename(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, []byte("before"), 0o644))
	f, err := os.OpenFile(path+".part", os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	defer f.Close()
	_, err = f.WriteString("now")
	must(t, err, durable.Rename(f, path))
	holds(t, path, "now", 0o600)
}

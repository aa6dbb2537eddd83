package disk

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
)

// A directory that is gone, or that another has the path of, is left alone as a disk that fails,
// whatever could not be found there; and is used when it is back.
func TestADirectoryThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d := newDisk(t, slog.New(slog.NewTextHandler(&log, nil)))
		dir := d.place.Root.Name()
		look := func() error {
			_, err := Ask(t.Context(), d, func() (fs.FileInfo, error) { return os.Lstat(dir + "/file") })
			return err
		}
		if d.Failed(fs.ErrNotExist) != nil || d.Free() != 1<<20 || !errors.Is(look(), fs.ErrNotExist) {
			t.Error("it fails as something else is not there")
		}
		for _, other := range []bool{false, true} {
			if err := os.Rename(dir, dir+"-away"); err != nil {
				t.Fatal(err)
			}
			if other {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			} else if _, err := d.Job(7); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a job has a directory where there is none: %v", err)
			}
			if err := d.Failed(fs.ErrNotExist); err != ErrGone || d.Free() > 0 || d.Take(1) {
				t.Errorf("it is gone, and %d bytes are free: %v", d.Free(), err)
			}
			if err := look(); err != ErrGone {
				t.Errorf("it is gone, and of a file there it is said: %v", err)
			}
			if err := d.Full(); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "bring it back") {
				t.Errorf("it is gone, and takes nothing: %v", err)
			}
			if err := errors.Join(os.RemoveAll(dir), os.Rename(dir+"-away", dir)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(SuspendTime)
			job, err := d.Job(7)
			if err != nil || d.Free() != 1<<20 {
				t.Fatalf("it is back: %v, %d bytes are free", err, d.Free())
			}
			if err := look(); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is back, and of a file that is not there it is said: %v", err)
			}
			job.Close()
		}
		if n := strings.Count(log.String(), "pool-nvme directory suspended"); n != 2 || strings.Count(log.String(), "the directory is gone") != 2 {
			t.Errorf("the log says\n%s", &log)
		}
	})
}

// The directory of a node is of one daemon.
func TestTwoDaemons(t *testing.T) {
	at, note, log := t.TempDir(), filepath.Join(t.TempDir(), "note"), slog.New(slog.DiscardHandler)
	d, err := Open(at, 1<<20, self, note, log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(at, 1<<20, self, note, log); !errors.Is(err, meta.ErrBusy) || !strings.Contains(err.Error(), "a rankfs that has the id of this node, 00000000000000aa, uses it; unmount that") {
		t.Errorf("two have one: %v", err)
	}
	other, err := Open(at, 1<<20, "00000000000000bb", note+"-of-another", log)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(other.Close(), d.Close()); err != nil {
		t.Error(err)
	}
	if d, err = Open(at, 1<<20, self, note, log); err != nil {
		t.Fatal(err)
	}
	d.Close()
}

package diskdir_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/diskdir"
	"rankfs/meta/slowdisk"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T, path string) *diskdir.Place {
	t.Helper()
	p, err := diskdir.Open(path, true)
	must(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// A directory is of one process, until that lets go of it.
func TestAPlaceIsOfOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir")
	if _, err := diskdir.Try(path); err != nil {
		t.Errorf("one that is to be made: %v", err)
	}
	if _, err := diskdir.Open(path, false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	p := opened(t, path)
	for range 2 {
		if other, err := diskdir.Open(path, true); !errors.Is(err, meta.ErrBusy) {
			t.Errorf("while it is used another one has %v, %v", other, err)
		}
		if _, err := diskdir.Try(path); !errors.Is(err, meta.ErrBusy) {
			t.Errorf("while it is used, tried: %v", err)
		}
	}
	must(t, p.Close())
	at, err := diskdir.Try(path)
	must(t, err)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(path, link))
	if same, err := diskdir.Try(link); same != at || err != nil {
		t.Errorf("by another name it is %v, want %v: %v", same, at, err)
	}
	opened(t, path)
}

// A directory that went away is missed, also while another one has its path, and is used when it
// is back. What was opened stays where it is.
func TestAPlaceThatIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir")
	p := opened(t, path)
	must(t, p.Probe(), p.Writable())
	must(t, os.Rename(path, path+"-away"))
	if err := p.Probe(); err != diskdir.ErrGone {
		t.Errorf("it is gone: %v", err)
	}
	must(t, os.Mkdir(path, 0o700))
	if err := p.Probe(); err != diskdir.ErrGone {
		t.Errorf("another has its path: %v", err)
	}
	must(t, p.Root.WriteFile("file", nil, 0o600))
	if _, err := os.Stat(path + "-away/file"); err != nil {
		t.Error(err)
	}
	must(t, os.Remove(path), os.Rename(path+"-away", path), p.Probe())

	must(t, p.Close(), os.RemoveAll(path), p.MayReturn())
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		t.Errorf("it was removed, and is not made again: %v", err)
	}
	must(t, os.RemoveAll(filepath.Dir(path)))
	if err := p.MayReturn(); err != diskdir.ErrGone {
		t.Errorf("what is above it is gone: %v", err)
	}
}

// A failure is over when its time is, one to read when it is healed, and one that is read-only when
// files can be made; while the disk is silent nothing is written either. Each is told of once.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := diskdir.Health{Name: "directory", Dir: "/d", Suspend: time.Minute, Log: slog.New(slog.NewTextHandler(&log, nil)), Failing: make(chan struct{}, 1)}
		is := func(when string, suspended, unreadable error, lines int) {
			t.Helper()
			if s, u := h.Suspended(), h.Unreadable(); s != suspended || u != unreadable {
				t.Errorf("%s: %v, and to readers %v; want %v, %v", when, s, u, suspended, unreadable)
			}
			if n := bytes.Count(log.Bytes(), []byte("\n")); n != lines {
				t.Errorf("%s: %d lines in the log, want %d:\n%s", when, n, lines, &log)
			}
		}
		is("at first", nil, nil, 0)
		for range 2 {
			h.Fail(io.ErrShortWrite, false)
			is("a write fails", io.ErrShortWrite, nil, 1)
		}
		time.Sleep(time.Minute - 1)
		is("just before the time is over", io.ErrShortWrite, nil, 1)
		time.Sleep(time.Nanosecond)
		is("then", nil, nil, 1)

		h.Fail(io.ErrUnexpectedEOF, true)
		h.Fail(io.ErrShortWrite, false)
		h.MayWrite(nil)
		time.Sleep(time.Hour)
		is("a read has failed", io.ErrShortWrite, io.ErrShortWrite, 2)
		if len(h.Failing) != 1 {
			t.Error("Failing does not tell that it has to be healed")
		}
		h.Heal()
		is("it is healed", nil, nil, 3)

		for range 2 {
			h.MayWrite(os.ErrPermission)
			time.Sleep(time.Hour)
			is("no file can be made", os.ErrPermission, nil, 4)
		}
		for range 2 {
			h.MayWrite(nil)
			is("files can be made", nil, nil, 5)
		}

		answer := make(chan struct{})
		_, err := slowdisk.Run(t.Context(), &h.Disk, time.Second, slowdisk.Once(func() (int, error) {
			<-answer
			return 0, nil
		}), nil)
		is("the disk is silent", err, nil, 5)
		close(answer)
		synctest.Wait()
		is("it has answered", nil, nil, 5)
	})
}

// What stays has the budget before all else, which has what is left.
func TestBudget(t *testing.T) {
	b := diskdir.Budget{Max: 100}
	has := func(when string, left, beside, used, staying int64) {
		t.Helper()
		u, s := b.Use()
		if got, want := [4]int64{b.Left(), b.Beside(), u, s}, [4]int64{left, beside, used, staying}; got != want {
			t.Errorf("%s: left, beside, used and staying are %v, want %v", when, got, want)
		}
	}
	if !b.Count(60) || b.Count(41) || b.Count(math.MaxInt64) {
		t.Error("60 of 100 are not as they should be")
	}
	has("60 are counted", 40, 100, 60, 0)
	if b.Reserve(101) || b.Reserve(math.MaxInt64) || !b.Reserve(90) || b.Reserve(11) || b.Count(1) || b.Charge(90) {
		t.Error("90 are not reserved as they should be")
	}
	has("90 are reserved", -50, 10, 60, 0)
	b.Add(-50)
	has("50 have made way", 0, 10, 10, 0)
	if !b.Charge(90) {
		t.Error("there is no room for what was reserved")
	}
	has("90 are charged", 0, 10, 100, 90)
	b.Release(90, true)
	has("they are released", 90, 100, 10, 0)
	if !b.Reserve(20) {
		t.Error("20 are not reserved")
	}
	b.Release(20, false)
	has("20 were reserved", 90, 100, 10, 0)
}

package mapfiles

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/slowdisk"
	"rankfs/shuffle/disk"
)

// stuck is work of which the disk answers when it is told to.
func stuck(answer <-chan struct{}) func(*slowdisk.Work) error {
	return func(w *slowdisk.Work) error {
		return w.Do(func() error {
			<-answer
			return nil
		})
	}
}

// No call waits for long for a disk that does not answer, nor does anything else begin there, until
// it has answered, and has been left alone for a while.
func TestADiskThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := onDisk(t, 1<<20, slog.New(slog.NewTextHandler(&log, nil)))
		d, answer := f.disk.disk, make(chan struct{})
		if err := d.Do(t.Context(), stuck(answer)); err != disk.ErrSilent {
			t.Errorf("it does not answer: %v", err)
		}
		name, _, all := mapOfBytes(t, "words")
		take := func() error { return f.Take(t.Context(), true, name, all, bytes.NewReader([]byte("words"))) }
		for range 2 {
			if err := take(); err != disk.ErrFull || d.Free() > 0 {
				t.Errorf("meanwhile a map is %v, and %d bytes are free", err, d.Free())
			}
			time.Sleep(2 * disk.SuspendTime)
		}
		close(answer)
		synctest.Wait()
		if err := take(); err != nil {
			t.Error(err)
		}
		if n := bytes.Count(log.Bytes(), []byte("\n")); n != 1 {
			t.Errorf("the log says %s", &log)
		}
	})
}

// What is on a disk is read while it takes no writes. While it does not answer to reads either,
// no reader waits for it, and no map there is taken for lost.
func TestADiskThatDoesNotAnswerToReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, answer := onDisk(t, 1<<20, slog.New(slog.DiscardHandler)), make(chan struct{})
		d := f.disk.disk
		name, c, all := mapOfBytes(t, "words")
		if err := f.Take(t.Context(), true, name, all, bytes.NewReader([]byte("words"))); err != nil {
			t.Fatal(err)
		}
		if err := d.Do(t.Context(), stuck(answer)); err != disk.ErrSilent {
			t.Fatal(err)
		}
		if has, err := f.Has(t.Context(), 9, c); !has || err != nil {
			t.Errorf("it takes no writes, and has the map: %v, %v", has, err)
		}
		if err := f.Verify(9, c); err != nil {
			t.Errorf("it takes no writes: %v", err)
		}
		_, err := disk.Ask(t.Context(), d, func() (int, error) {
			<-answer
			return 1, nil
		})
		if err != disk.ErrSilent {
			t.Errorf("it does not answer: %v", err)
		}
		f.open.End()
		if has, err := f.Has(t.Context(), 9, c); has || err != disk.ErrSilent || f.Lacks(t.Context(), 9, c) {
			t.Errorf("it does not answer, and has the map: %v, %v", has, err)
		}
		if err := f.Verify(9, c); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, meta.ErrCorrupt) || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EIO) {
			t.Errorf("a map is read of a disk that does not answer: %v", err)
		}
		if _, err := f.disk.Names(t.Context(), "."); err != disk.ErrSilent {
			t.Errorf("its names are read: %v", err)
		}
		close(answer)
		synctest.Wait()
		if f.Lacks(t.Context(), 9, c) || f.Verify(9, c) != nil {
			t.Error("it answers, and has not the map")
		}
	})
}

// Of a disk that does not answer it is not said that its directory is gone, though something was not
// found there; nor that it does not answer, once it does.
func TestADiskThatDoesNotAnswerIsNotGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, answer := onDisk(t, 1<<20, slog.New(slog.DiscardHandler)), make(chan struct{})
		dir := filepath.Dir(f.disk.root.Name())
		name, _, all := mapOfBytes(t, "words")
		take := func() error { return f.Take(t.Context(), true, name, all, bytes.NewReader([]byte("words"))) }
		if err := os.Rename(dir, dir+"-away"); err != nil {
			t.Fatal(err)
		}
		_, err := disk.Ask(t.Context(), f.disk.disk, func() (int, error) {
			<-answer
			return 1, nil
		})
		if err != disk.ErrSilent {
			t.Fatalf("it does not answer: %v", err)
		}
		time.Sleep(disk.SuspendTime)
		if err := take(); !errors.Is(err, disk.ErrSilent) || errors.Is(err, disk.ErrGone) {
			t.Errorf("a map that was to be written: %v", err)
		}
		close(answer)
		synctest.Wait()
		time.Sleep(disk.SuspendTime)
		if err := take(); !errors.Is(err, disk.ErrGone) || errors.Is(err, disk.ErrSilent) {
			t.Errorf("and when it answers: %v", err)
		}
	})
}

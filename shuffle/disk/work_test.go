package disk

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta/slowdisk"
)

func newDisk(t *testing.T, log *slog.Logger) *Disk {
	t.Helper()
	d, err := Open(t.TempDir(), 1<<20, self, filepath.Join(t.TempDir(), "note"), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// waiting is work of which the disk answers when it is told to.
func waiting(answer <-chan struct{}) func(*slowdisk.Work) error {
	return func(w *slowdisk.Work) error {
		return w.Do(func() error {
			<-answer
			return nil
		})
	}
}

// A disk that does not answer is waited for no longer than it may be silent, and nothing else is
// written until it has answered, and has been left alone for a while; it is read meanwhile, if it
// answers to that.
func TestASilentDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, answer := newDisk(t, slog.New(slog.DiscardHandler)), make(chan struct{})
		begun := time.Now()
		if err := d.Do(t.Context(), waiting(answer)); !errors.Is(err, ErrSilent) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it does not answer: %v", err)
		}
		if took := time.Since(begun); took < patience || took > 2*patience {
			t.Errorf("it was waited for for %v", took)
		}
		nothing := func(*slowdisk.Work) error { return nil }
		for range 2 {
			if err := d.Do(t.Context(), nothing); err != ErrFull || d.Free() > 0 || d.Take(1) {
				t.Errorf("meanwhile it says %v, and %d bytes are free", err, d.Free())
			}
			if n, err := Ask(t.Context(), d, func() (int, error) { return 7, nil }); n != 7 || err != nil {
				t.Errorf("meanwhile who reads is told %d, %v", n, err)
			}
			time.Sleep(2 * SuspendTime)
		}
		close(answer)
		synctest.Wait()
		if err := d.Do(t.Context(), nothing); err != nil || d.Free() != 1<<20 {
			t.Errorf("it has answered: %v, %d bytes are free", err, d.Free())
		}
	})
}

// A user who gives up waits no longer, and what is slow to come is no fault of the disk.
func TestWorkIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, answer := newDisk(t, slog.New(slog.DiscardHandler)), make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := d.Do(ctx, waiting(answer)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrSilent) {
			t.Errorf("it was left: %v", err)
		}
		if d.Free() == 0 {
			t.Error("a disk that is slow for a second is left alone")
		}
		close(answer)

		reads := 0
		slow := readerOf(func(b []byte) (int, error) {
			reads++
			time.Sleep(2 * patience)
			return len(b), nil
		})
		copies := func(n int64) func(*slowdisk.Work) error {
			return func(w *slowdisk.Work) error {
				_, err := io.CopyN(io.Discard, w.Reading(slow), n)
				return err
			}
		}
		if err := d.Do(t.Context(), copies(1)); err != nil {
			t.Errorf("of what comes slowly: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), patience)
		defer cancel()
		begun := time.Now()
		if err := d.Do(ctx, copies(1<<20)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("left amid a read: %v", err)
		}
		if took := time.Since(begun); took != 2*patience {
			t.Errorf("it was left after %v, and what it read was read until %v", took, 2*patience)
		}
		time.Sleep(time.Hour)
		if reads != 2 {
			t.Errorf("%d reads, of which one began when no caller waited any more", reads)
		}
	})
}

type readerOf func([]byte) (int, error)

func (r readerOf) Read(b []byte) (int, error) { return r(b) }

// A file that takes the name of another counts once.
func TestWhatHadTheNameCountsNoMore(t *testing.T) {
	d := newDisk(t, slog.New(slog.DiscardHandler))
	dir := d.place.Root.Name()
	for _, name := range []string{"old", "new"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("words"), 0o600); err != nil {
			t.Fatal(err)
		}
		if !d.Take(Blocks(5)) {
			t.Fatal("it is full")
		}
	}
	if err := d.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	if used, most := d.Room(); used != Blocks(5) || most != 1<<20 {
		t.Errorf("%d of %d bytes are used, want %d", used, most, Blocks(5))
	}
}

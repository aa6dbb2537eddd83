package slowdisk_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta/slowdisk"
)

const patience = 30 * time.Second

// waiting is a system call that the disk answers when it is told to.
func waiting(answer <-chan struct{}) func() error {
	return func() error {
		<-answer
		return nil
	}
}

func do(ctx context.Context, d *slowdisk.Disk, work func(*slowdisk.Work) error) error {
	_, err := slowdisk.Run(ctx, d, patience, slowdisk.Plain(work), nil)
	return err
}

func nothing(*slowdisk.Work) error { return nil }

// Work is left behind when the disk was silent for so long, to the moment, since a call began or
// ended last, and until it has ended nothing else is begun but what finishes work.
func TestASilentDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d slowdisk.Disk
		answer, end, begun := make(chan struct{}), make(chan struct{}), time.Now()
		late := 0
		_, err := slowdisk.Run(t.Context(), &d, patience, func(w *slowdisk.Work) (int, error) {
			for range 3 {
				_ = w.Do(func() error {
					time.Sleep(patience - 1)
					return nil
				})
			}
			time.Sleep(time.Hour) // of which the disk knows nothing
			_ = w.Do(waiting(answer))
			if err := w.Do(func() error { return nil }); err == nil {
				t.Error("one more call is made")
			}
			return 7, w.Undo(waiting(end))
		}, func(is int) { late = is })
		if took := time.Since(begun) - time.Hour - 3*(patience-1); err != slowdisk.ErrSilent || took != patience {
			t.Errorf("it is left after a silence of %v: %v", took, err)
		}
		refused := func() {
			t.Helper()
			if err := do(t.Context(), &d, nothing); err != slowdisk.ErrRefused || !errors.Is(err, slowdisk.ErrSilent) || !d.Silent() {
				t.Errorf("meanwhile other work is told %v", err)
			}
		}
		refused()
		finishes := make(chan struct{}, 1)
		begun = time.Now()
		err = d.Finish(patience, func(w *slowdisk.Work) error {
			return w.Do(func() error {
				finishes <- struct{}{}
				return waiting(answer)()
			})
		})
		if took := time.Since(begun); err != slowdisk.ErrSilent || len(finishes) != 1 || took > time.Second {
			t.Errorf("other work is finished: %v, after %v", err, took)
		}
		close(answer)
		synctest.Wait()
		refused() // for it has not ended
		close(end)
		d.Wait()
		if err := do(t.Context(), &d, nothing); err != nil || d.Silent() || late != 7 {
			t.Errorf("it has ended, and came to %d: %v", late, err)
		}
	})
}

// A disk that answers to one of two calls is not silent to the other.
func TestTwoCallsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d slowdisk.Disk
		takes := func(long time.Duration) func() error {
			return func() error {
				time.Sleep(long)
				return nil
			}
		}
		err := do(t.Context(), &d, func(w *slowdisk.Work) error {
			var other sync.WaitGroup
			defer other.Wait()
			other.Go(func() { _ = w.Do(takes(patience - 1)) })
			return w.Do(takes(2*patience - 2))
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A caller that gives up waits no longer. A disk that is slow to answer then is not silent, unless
// that is for too long, and until it answers.
func TestWorkIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d slowdisk.Disk
		answer := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := do(ctx, &d, func(w *slowdisk.Work) error { return w.Do(waiting(answer)) }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it is given up: %v", err)
		}
		if err := do(t.Context(), &d, nothing); err != nil {
			t.Errorf("after a second: %v", err)
		}
		time.Sleep(patience - time.Second)
		if err := do(t.Context(), &d, nothing); err != slowdisk.ErrRefused {
			t.Errorf("after %v: %v", patience, err)
		}
		close(answer)
		synctest.Wait()
		if d.Silent() {
			t.Error("it has answered")
		}
	})
}

// What others own is not touched once their work is left behind; that waits for a read of it.
func TestNothingOfOthersIsTouchedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d slowdisk.Disk
		mem, reads := []byte("mine"), 0
		slow := readerOf(func(b []byte) (int, error) {
			reads++
			time.Sleep(time.Minute)
			return len(b), nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		err := do(ctx, &d, func(w *slowdisk.Work) error {
			if err := w.Give(mem, []byte("MI")); err != nil {
				t.Error(err)
			}
			_, err := io.CopyN(io.Discard, w.Reading(slow), 1<<20)
			if late := w.Give(mem, []byte("late")); err == nil || late == nil {
				t.Errorf("it is read and written late: %v, %v", err, late)
			}
			return nil
		})
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took != time.Minute {
			t.Errorf("it is left after %v, amid a read of a minute: %v", took, err)
		}
		d.Wait()
		if string(mem) != "MIne" || reads != 1 {
			t.Errorf("%d reads, and there is %q", reads, mem)
		}
	})
}

type readerOf func([]byte) (int, error)

func (r readerOf) Read(b []byte) (int, error) { return r(b) }

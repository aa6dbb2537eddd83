package pool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is work of which the disk answers when it is told to.
func stuck(answer <-chan struct{}) func(*diskWork) error {
	return func(e *diskWork) error {
		return e.do(func() error {
			<-answer
			return nil
		})
	}
}

// Nobody waits for a disk that does not answer, nor does anything else begin there, until it
// has answered, and has been left alone for a while.
func TestADiskThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := onDisk(t, 1<<20, slog.New(slog.NewTextHandler(&log, nil)))
		d, answer := f.disk.disk, make(chan struct{})
		begun := time.Now()
		if err := d.do(t.Context(), patience, stuck(answer)); !errors.Is(err, errSilent) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it does not answer: %v", err)
		}
		if took := time.Since(begun); took < patience || took > 2*patience {
			t.Errorf("it was waited for for %v", took)
		}
		name, _, all := mapOfBytes(t, "words")
		take := func() error { return f.take(t.Context(), true, name, all, bytes.NewReader([]byte("words"))) }
		for range 2 {
			if err := take(); err != errFull || d.free() > 0 {
				t.Errorf("meanwhile a map is %v, and %d bytes are free", err, d.free())
			}
			time.Sleep(2 * restTime)
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

// A user who gives up waits no longer, and what is slow to come is no fault of the disk.
func TestAnErrandIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, answer := onDisk(t, 1<<20, slog.New(slog.DiscardHandler)).disk.disk, make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := d.do(ctx, patience, stuck(answer)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errSilent) {
			t.Errorf("it was left: %v", err)
		}
		if d.free() == 0 {
			t.Error("a disk that is slow for a second is left alone")
		}
		close(answer)

		reads := 0
		slow := readerOf(func(b []byte) (int, error) {
			reads++
			time.Sleep(2 * patience)
			return len(b), nil
		})
		copies := func(n int64) func(*diskWork) error {
			return func(e *diskWork) error {
				_, err := io.CopyN(io.Discard, e.reading(slow), n)
				return err
			}
		}
		if err := d.do(t.Context(), patience, copies(1)); err != nil {
			t.Errorf("of what comes slowly: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), patience)
		defer cancel()
		begun := time.Now()
		if err := d.do(ctx, patience, copies(1<<20)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("left amid a read: %v", err)
		}
		if took := time.Since(begun); took != 2*patience {
			t.Errorf("it was left after %v, and what it read was read until %v", took, 2*patience)
		}
		time.Sleep(time.Hour)
		if reads != 2 {
			t.Errorf("%d reads, of which one was after nobody waited", reads)
		}
	})
}

type readerOf func([]byte) (int, error)

func (r readerOf) Read(b []byte) (int, error) { return r(b) }

// While a disk does not answer to one that gives up a copy, other copies are expected, and files of
// the job are written; who comes to expect that copy waits until it is gone.
func TestACopyIsGivenUpOnASilentDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, answer := onDisk(t, 1<<20, slog.New(slog.DiscardHandler)), make(chan struct{})
		no := func() bool { return false }
		go f.giveUp("copy", no, func() { <-answer })
		synctest.Wait()
		f.expect("other")()
		done, err := f.use("attempt")
		if err != nil {
			t.Fatal(err)
		}
		done()
		expected := make(chan struct{})
		go func() {
			defer close(expected)
			f.expect("copy")()
		}()
		synctest.Wait()
		select {
		case <-expected:
			t.Error("a copy is expected that goes")
		default:
		}
		close(answer)
		<-expected
		time.Sleep(2 * commitTime)
	})
}

// What is on a disk is read while it takes no writes. While it does not answer to those who read,
// nobody waits for it, and no map there is taken for lost.
func TestADiskThatDoesNotAnswerToReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, answer := onDisk(t, 1<<20, slog.New(slog.DiscardHandler)), make(chan struct{})
		d := f.disk.disk
		name, c, all := mapOfBytes(t, "words")
		if err := f.take(t.Context(), true, name, all, bytes.NewReader([]byte("words"))); err != nil {
			t.Fatal(err)
		}
		if err := d.do(t.Context(), patience, stuck(answer)); err != errSilent {
			t.Fatal(err)
		}
		if has, err := f.hasMap(t.Context(), 9, c); !has || err != nil {
			t.Errorf("it takes no writes, and has the map: %v, %v", has, err)
		}
		if err := f.verify(9, c); err != nil {
			t.Errorf("it takes no writes: %v", err)
		}
		_, err := ask(t.Context(), d, func() (int, error) {
			<-answer
			return 1, nil
		})
		if err != errSilent {
			t.Errorf("it does not answer: %v", err)
		}
		f.open.End()
		if has, err := f.hasMap(t.Context(), 9, c); has || err != errSilent || f.lacks(t.Context(), 9, c) {
			t.Errorf("it does not answer, and has the map: %v, %v", has, err)
		}
		if err := f.verify(9, c); !errors.Is(err, context.DeadlineExceeded) || isDamage(err) {
			t.Errorf("a map is read of a disk that does not answer: %v", err)
		}
		if _, err := f.disk.names(t.Context(), "."); err != errSilent {
			t.Errorf("its names are read: %v", err)
		}
		close(answer)
		synctest.Wait()
		if f.lacks(t.Context(), 9, c) || f.verify(9, c) != nil {
			t.Error("it answers, and has not the map")
		}
	})
}

package slowdisk

import (
	"errors"
	"io"
	"sync"
	"time"
)

// A Work is work on a disk, which may not answer: each system call on the disk is made by Do or
// Undo, and memory that others own is read and written by Reading and Give alone, so that nothing
// of that is touched once the work is left behind. Its methods may be called concurrently. Where it
// is nil, the caller does the work itself. The lock guards what is below it.
type Work struct {
	patience time.Duration

	mu        sync.Mutex
	moved     time.Duration // from epoch until a system call began or ended last
	calls     int32         // that are under way
	touches   int32         // of what others own, that are under way
	untouched chan struct{} // closed when there are none, if the work is left amid one
	ended     bool
	left      bool // no caller waits for it
	silent    bool // as the disk did not answer: what it does late is over when it has ended
}

var errLeft = errors.New("no caller waits any more for what is done on the disk")

// epoch is what times are counted from: one that is counted takes half as long to read as one of
// the day.
var epoch = time.Now()

// Do makes a system call on the disk, unless the work is left behind.
func (w *Work) Do(call func() error) error {
	if w != nil {
		if left := w.beginCall(); left {
			w.endCall()
			return errLeft
		}
		defer w.endCall()
	}
	return call()
}

// Undo makes a system call that takes back what the work has done, left behind or not.
func (w *Work) Undo(call func() error) error {
	if w != nil {
		w.beginCall()
		defer w.endCall()
	}
	return call()
}

func (w *Work) beginCall() (left bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	w.moved = time.Since(epoch)
	return w.left
}

func (w *Work) endCall() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls--
	w.moved = time.Since(epoch)
}

// Give copies bytes to memory that others own.
func (w *Work) Give(to, from []byte) error {
	if w != nil {
		if !w.touch() {
			return errLeft
		}
		defer w.endTouch()
	}
	copy(to, from)
	return nil
}

// Reading is r, which reads what others own, as the work may read it.
func (w *Work) Reading(r io.Reader) io.Reader {
	if w == nil {
		return r
	}
	return reading{w, r}
}

type reading struct {
	work *Work
	r    io.Reader
}

func (r reading) Read(b []byte) (int, error) {
	if !r.work.touch() {
		return 0, errLeft
	}
	defer r.work.endTouch()
	return r.r.Read(b)
}

func (w *Work) touch() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.left {
		w.touches++
	}
	return !w.left
}

func (w *Work) endTouch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.touches--; w.touches == 0 && w.untouched != nil {
		close(w.untouched)
	}
}

// end ends the work, and reports whether a caller waited to the end.
func (w *Work) end() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	return !w.left
}

// leave leaves the work behind, unless it has ended, and returns what is closed when nothing is
// touched any more that others own; nil if nothing is.
func (w *Work) leave(silent bool) (left bool, untouched <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.silent = !w.ended, silent
	if w.left && w.touches > 0 {
		w.untouched = make(chan struct{})
	}
	return w.left, w.untouched
}

// rest is for how long the disk may be silent still; it is counted from the last system call that
// began or ended, while there are any.
func (w *Work) rest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.silent:
		return 0
	case w.calls == 0:
		return w.patience
	}
	return w.patience - (time.Since(epoch) - w.moved)
}

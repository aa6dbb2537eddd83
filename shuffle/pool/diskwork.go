package pool

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"rankfs/meta"
)

// An errand is work on a disk, which may not answer. It has a goroutine of its own, that is left
// behind when the disk has been silent for too long, and then gets to an end by itself: each system
// call on the disk is made by do, and what others own is read by what reading gives, so that
// nothing of that is touched any more. Where there is no errand, the caller does the work itself.
// The lock guards what is below it.
type errand struct {
	patience time.Duration

	mu    sync.Mutex
	on    int       // system calls that are under way
	moved time.Time // when one of these began or ended last
	reads int       // of what others own
	left  bool      // no caller waits for it

	unread *sync.Cond // nothing is read that others own
}

// How long a disk may be silent: before its directory of a job is there, and amid other work. What
// is to last is synced after each so many bytes, so that no more is to be written by one call.
const (
	jobPatience = 10 * time.Second
	patience    = 30 * time.Second
	syncBytes   = 64 << 20
)

var (
	errSilent = meta.Worded(context.DeadlineExceeded, "the disk of the shuffle pool does not answer: try once more when it does")
	errLeft   = errors.New("nobody waits any more for what is done on the disk")
)

// Errands are those on a disk that have not come to an end. The lock guards them; it comes before
// theirs.
type errands struct {
	mu  sync.Mutex
	all map[*errand]bool
}

// wait has work done, and waits for it until the disk is silent, or ctx ends. As long as one
// before it waits for an answer for too long there is none.
func (all *errands) wait(ctx context.Context, patience time.Duration, work func(*errand) error) error {
	e := &errand{patience: patience, moved: time.Now()}
	e.unread = sync.NewCond(&e.mu)
	if all.silent() {
		return errFull
	}
	all.add(e)
	done := make(chan error, 1)
	go func() {
		err := work(e)
		all.remove(e)
		done <- err
	}()
	look := time.NewTicker(patience / 8)
	defer look.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			e.leave()
			return cause(ctx)
		case <-look.C:
			if e.silent() {
				e.leave()
				return errSilent
			}
		}
	}
}

func (all *errands) add(e *errand) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.all == nil {
		all.all = make(map[*errand]bool)
	}
	all.all[e] = true
}

func (all *errands) remove(e *errand) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.all, e)
}

// silent reports whether one waits for an answer for too long.
func (all *errands) silent() bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	for e := range all.all {
		if e.silent() {
			return true
		}
	}
	return false
}

// silent reports whether the disk has not answered for too long.
func (e *errand) silent() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.on > 0 && time.Since(e.moved) >= e.patience
}

// leave says that its caller waits no more, and waits until nothing is read that others own.
func (e *errand) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.left = true
	for e.reads > 0 {
		e.unread.Wait()
	}
}

// do makes a system call on the disk.
func (e *errand) do(call func() error) error {
	if e == nil {
		return call()
	}
	if err := e.count(&e.on, 1); err != nil {
		return err
	}
	defer e.count(&e.on, -1)
	return call()
}

// count counts what begins, if the errand was not left, and what ends.
func (e *errand) count(what *int, n int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.left && n > 0 {
		return errLeft
	}
	*what += n
	if what == &e.on {
		e.moved = time.Now()
	}
	if e.reads == 0 {
		e.unread.Broadcast()
	}
	return nil
}

// reading is r as the errand may read it.
func (e *errand) reading(r io.Reader) io.Reader {
	if e == nil {
		return r
	}
	return owned{e, r}
}

type owned struct {
	errand *errand
	r      io.Reader
}

func (o owned) Read(b []byte) (int, error) {
	if err := o.errand.count(&o.errand.reads, 1); err != nil {
		return 0, err
	}
	defer o.errand.count(&o.errand.reads, -1)
	return o.r.Read(b)
}

// An output is a file that an errand writes.
type output struct {
	errand  *errand
	file    *os.File
	lasting bool
	n       int64 // bytes since it was synced
}

func (w *output) Write(b []byte) (n int, err error) {
	err = w.errand.do(func() error {
		n, err = w.file.Write(b)
		return err
	})
	if w.n += int64(n); err == nil && w.lasting && w.n >= syncBytes {
		err = w.sync()
	}
	return n, err
}

func (w *output) sync() error {
	w.n = 0
	return w.errand.do(w.file.Sync)
}

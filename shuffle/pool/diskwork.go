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

// A diskWork is work on a disk, which may not answer. It has a goroutine of its own, that is left
// behind when the disk has been silent for too long, and then gets to an end by itself: each system
// call on the disk is made by do, and what others own is read by what reading gives, so that
// nothing of that is touched any more. Where it is nil, the caller does the work itself.
// The lock guards what is below it.
type diskWork struct {
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

// diskWorks are the works on a disk that have not come to an end. The lock guards them; it comes before
// theirs.
type diskWorks struct {
	mu  sync.Mutex
	all map[*diskWork]bool
}

// wait has work done, and waits for it until the disk is silent, or ctx ends. As long as one
// before it waits for an answer for too long there is none.
func (all *diskWorks) wait(ctx context.Context, patience time.Duration, work func(*diskWork) error) error {
	e := &diskWork{patience: patience, moved: time.Now()}
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

func (all *diskWorks) add(e *diskWork) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.all == nil {
		all.all = make(map[*diskWork]bool)
	}
	all.all[e] = true
}

func (all *diskWorks) remove(e *diskWork) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.all, e)
}

// silent reports whether one waits for an answer for too long.
func (all *diskWorks) silent() bool {
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
func (e *diskWork) silent() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.on > 0 && time.Since(e.moved) >= e.patience
}

// leave says that its caller waits no more, and waits until nothing is read that others own.
func (e *diskWork) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.left = true
	for e.reads > 0 {
		e.unread.Wait()
	}
}

// do makes a system call on the disk.
func (e *diskWork) do(call func() error) error {
	if e == nil {
		return call()
	}
	if err := e.count(&e.on, 1); err != nil {
		return err
	}
	defer e.count(&e.on, -1)
	return call()
}

// count counts what begins, if the work was not left, and what ends.
func (e *diskWork) count(what *int, n int) error {
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

// reading is r as the work may read it.
func (e *diskWork) reading(r io.Reader) io.Reader {
	if e == nil {
		return r
	}
	return owned{e, r}
}

type owned struct {
	work *diskWork
	r    io.Reader
}

func (o owned) Read(b []byte) (int, error) {
	if err := o.work.count(&o.work.reads, 1); err != nil {
		return 0, err
	}
	defer o.work.count(&o.work.reads, -1)
	return o.r.Read(b)
}

// An output is a file that a diskWork writes.
type output struct {
	work    *diskWork
	file    *os.File
	lasting bool
	n       int64 // bytes since it was synced
}

func (w *output) Write(b []byte) (n int, err error) {
	err = w.work.do(func() error {
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
	return w.work.do(w.file.Sync)
}

package disk

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"rankfs/meta"
)

// A Work is work on a disk, which may not answer. It has a goroutine of its own, that is left
// behind when the disk has been silent for too long, and then gets to an end by itself: each system
// call on the disk is made by Do, and what others own is read by what Reading gives, so that
// nothing of that is touched any more. Where it is nil, the caller does the work itself.
// The lock guards what is below it.
type Work struct {
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
	// ErrSilent is for work on a disk that does not answer.
	ErrSilent = meta.Worded(context.DeadlineExceeded, "the disk of the shuffle pool does not answer: try once more when it does")

	errLeft = errors.New("nobody waits any more for what is done on the disk")
)

// works are the works on a disk that have not come to an end. The lock guards them; it comes before
// theirs.
type works struct {
	mu  sync.Mutex
	all map[*Work]bool
}

// wait has work done, and waits for it until the disk is silent, or ctx ends. As long as one
// before it waits for an answer for too long there is none.
func (all *works) wait(ctx context.Context, patience time.Duration, work func(*Work) error) error {
	e := &Work{patience: patience, moved: time.Now()}
	e.unread = sync.NewCond(&e.mu)
	if all.silent() {
		return ErrFull
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
			return cmp.Or(ctx.Err(), context.Canceled)
		case <-look.C:
			if e.silent() {
				e.leave()
				return ErrSilent
			}
		}
	}
}

func (all *works) add(e *Work) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.all == nil {
		all.all = make(map[*Work]bool)
	}
	all.all[e] = true
}

func (all *works) remove(e *Work) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.all, e)
}

// silent reports whether one waits for an answer for too long.
func (all *works) silent() bool {
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
func (e *Work) silent() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.on > 0 && time.Since(e.moved) >= e.patience
}

// leave says that its caller waits no more, and waits until nothing is read that others own.
func (e *Work) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.left = true
	for e.reads > 0 {
		e.unread.Wait()
	}
}

// Do makes a system call on the disk.
func (e *Work) Do(call func() error) error {
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
func (e *Work) count(what *int, n int) error {
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

// Reading is r as the work may read it.
func (e *Work) Reading(r io.Reader) io.Reader {
	if e == nil {
		return r
	}
	return owned{e, r}
}

type owned struct {
	work *Work
	r    io.Reader
}

func (o owned) Read(b []byte) (int, error) {
	if err := o.work.count(&o.work.reads, 1); err != nil {
		return 0, err
	}
	defer o.work.count(&o.work.reads, -1)
	return o.r.Read(b)
}

// An Output is a file that a Work writes.
type Output struct {
	work    *Work
	file    *os.File
	lasting bool
	n       int64 // bytes since it was synced
}

// Output is a file that the work writes; if lasting it is synced amid that.
func (e *Work) Output(file *os.File, lasting bool) *Output {
	return &Output{work: e, file: file, lasting: lasting}
}

// Write implements io.Writer.
func (w *Output) Write(b []byte) (n int, err error) {
	err = w.work.Do(func() error {
		n, err = w.file.Write(b)
		return err
	})
	if w.n += int64(n); err == nil && w.lasting && w.n >= syncBytes {
		err = w.Sync()
	}
	return n, err
}

// Sync has all that was written last.
func (w *Output) Sync() error {
	w.n = 0
	return w.work.Do(w.file.Sync)
}

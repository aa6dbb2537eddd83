package slowdisk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Disk is what is known of a disk by the work that is done on it, some of which no caller waits
// for any more. The zero Disk is ready. The lock guards what is below it, and comes before those of
// works.
type Disk struct {
	works sync.WaitGroup // that have not come to an end

	mu   sync.Mutex
	left map[*Work]bool // of these, those that no caller waits for
}

var (
	// ErrSilent is for work on a disk that does not answer.
	ErrSilent = errors.New("the disk does not answer")
	// ErrRefused is for work that is not begun, as the disk has not answered before.
	ErrRefused = fmt.Errorf("nothing is begun: %w", ErrSilent)
)

// finishPatience is for what only finishes work on a disk that is silent.
const finishPatience = time.Millisecond

// Run has work done in a goroutine of its own, and waits for it until the disk is silent for as
// long as patience, or ctx ends. Then it is left behind, and gets to an end by itself; what it
// still comes to goes to undo, if there is one. As long as the disk is silent nothing is begun: no
// more works are left behind than were under way when it fell silent.
func Run[T any](ctx context.Context, d *Disk, patience time.Duration, work func(*Work) (T, error), undo func(T)) (T, error) {
	if d.Silent() {
		var none T
		return none, ErrRefused
	}
	return run(ctx, d, patience, work, undo)
}

// Once is work that is one system call, or a few that are quick.
func Once[T any](call func() (T, error)) func(*Work) (T, error) {
	return func(w *Work) (says T, err error) {
		err = w.Do(func() (err error) {
			says, err = call()
			return err
		})
		return says, err
	}
}

// Plain is work that comes to nothing but an end.
func Plain(work func(*Work) error) func(*Work) (struct{}, error) {
	return func(w *Work) (struct{}, error) { return struct{}{}, work(w) }
}

// Finish has work done that ends what was begun before. A silent disk is given it all the same,
// as there is no more of it than of that, and hardly waited for.
func (d *Disk) Finish(patience time.Duration, work func(*Work) error) error {
	if d.Silent() {
		patience = finishPatience
	}
	_, err := run(context.Background(), d, patience, Plain(work), nil)
	return err
}

func run[T any](ctx context.Context, d *Disk, patience time.Duration, work func(*Work) (T, error), undo func(T)) (says T, err error) {
	type answer struct {
		says T
		err  error
	}
	w, done := &Work{patience: patience}, make(chan answer, 1)
	d.works.Go(func() {
		says, err := work(w)
		if w.end() {
			done <- answer{says, err}
			return
		}
		if err == nil && undo != nil {
			undo(says)
		}
		d.forget(w)
	})
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for err == nil {
		select {
		case a := <-done:
			return a.says, a.err
		case <-ctx.Done():
			err = cmp.Or(ctx.Err(), context.Canceled)
		case <-timer.C:
			if rest := w.rest(); rest > 0 {
				timer.Reset(rest)
			} else {
				err = ErrSilent
			}
		}
	}
	left, untouched := d.leave(w, err == ErrSilent)
	if !left { // it has come to its end meanwhile
		a := <-done
		return a.says, a.err
	}
	if untouched != nil {
		<-untouched
	}
	return says, err
}

// Silent reports whether the disk owes an answer to work that is left behind.
func (d *Disk) Silent() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.left {
		if w.rest() <= 0 {
			return true
		}
	}
	return false
}

// Wait waits until all work has come to its end.
func (d *Disk) Wait() { d.works.Wait() }

// leave notes that work is left behind, unless it has come to its end.
func (d *Disk) leave(w *Work, silent bool) (left bool, untouched <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if left, untouched = w.leave(silent); !left {
		return false, nil
	}
	if d.left == nil {
		d.left = make(map[*Work]bool)
	}
	d.left[w] = true
	return true, untouched
}

func (d *Disk) forget(w *Work) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.left, w)
}

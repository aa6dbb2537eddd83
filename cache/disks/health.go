package disks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A failure is why a directory is suspended.
type failure struct {
	cause      error
	until      time.Time
	unreadable bool // it is not read either
}

var (
	errStuck      = errors.New("its disk does not answer")
	errUnreadable = errors.New("it is not read now")
	errGone       = errors.New("the directory is gone, or something else is mounted there; bring it back, or mount without it")
)

// fail suspends the directory.
func (d *directory) fail(cause error, unreadable bool) {
	d.mu.Lock()
	old := d.mu.failure
	now := time.Now()
	d.mu.failure = failure{cause, now.Add(d.config.Suspend), unreadable || old.unreadable}
	d.mu.Unlock()
	if unreadable {
		select {
		case d.failing <- struct{}{}:
		default:
		}
	}
	if old.cause == nil || unreadable && !old.unreadable || !old.unreadable && now.After(old.until) {
		d.log.Warn("nvme directory suspended", "dir", d.path, "for", d.config.Suspend, "cause", cause)
	}
}

// suspended returns why nothing is written to the directory, or nil. mu is held.
func (d *directory) suspended() error {
	if i := &d.mu.failure; i.cause != nil && (i.unreadable || time.Now().Before(i.until)) {
		return i.cause
	}
	return nil
}

func (d *directory) healthy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.place != nil && d.suspended() == nil
}

// unreadable reports whether the directory is not to be read. mu is held.
func (d *directory) unreadable() bool { return d.mu.place == nil || d.mu.failure.unreadable }

// writable waits until the names of the directory have been seen, so that all
// that is in it counts, and returns its place unless it is suspended.
func (d *directory) writable() (*place, error) {
	d.mu.Lock()
	p, err := d.mu.place, d.suspended()
	d.mu.Unlock()
	if err != nil || p == nil {
		return nil, fmt.Errorf("nvme directory suspended: %s: %w: %w", d.path, err, ErrNoRoom)
	}
	timer := time.NewTimer(d.config.Patience)
	defer timer.Stop()
	select {
	case <-p.listed:
		return p, nil
	case <-timer.C:
		return nil, fmt.Errorf("nvme directory %s: its files are still being looked through: %w", d.path, ErrNoRoom)
	}
}

// retry tries a directory that is not to be read every so often, until it can be.
func (d *directory) retry(ctx context.Context) {
	for {
		d.mu.Lock()
		unreadable, wait := d.mu.failure.unreadable, time.Until(d.mu.failure.until)
		d.mu.Unlock()
		if !unreadable {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		err := d.revive()
		if err == nil {
			d.mu.Lock()
			d.mu.failure = failure{}
			d.mu.Unlock()
			d.log.Info("nvme directory is used again", "dir", d.path)
			return
		}
		d.fail(err, true)
	}
}

// revive finds out whether the directory can be used again, and enters it anew
// if it is another one by now.
func (d *directory) revive() error {
	d.mu.Lock()
	p, origin, stuck := d.mu.place, d.mu.origin, d.mu.stuck
	d.mu.Unlock()
	if stuck > 0 {
		return errStuck
	}
	if p != nil {
		err := d.do(func(*job) error { return p.probe(d.path) })
		if again := err == nil && !p.seen(); !again && !errors.Is(err, errGone) {
			return err
		}
		d.forget(p)
	}
	if origin != nil {
		if err := d.do(func(*job) error { return origin.mayReturn(d.path) }); err != nil {
			return err
		}
	}
	if err := d.enter(false); err != nil {
		return fmt.Errorf("nvme directory %s: %w", d.path, err)
	}
	return nil
}

// probe reports whether path still leads to the place, and the disk answers.
func (p *place) probe(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errGone
	}
	if err != nil {
		return err
	}
	if dev, ino := identity(info); dev != p.origin.dev || ino != p.ino {
		return errGone
	}
	f, err := p.root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.ReadDir(1)
	return err
}

// seen reports whether all names in the place have been looked at.
func (p *place) seen() bool {
	select {
	case <-p.listed:
		return true
	default:
		return false
	}
}

// mayReturn makes the directory again if it was removed. It refuses one on another
// disk, or where only the disk's empty mount point is left: slabs there would take
// another file system's room.
func (h *origin) mayReturn(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		above, err := os.Stat(filepath.Dir(path))
		if err != nil {
			return errGone
		}
		if dev, _ := identity(above); dev != h.dev || h.mounted {
			return errGone
		}
		return os.Mkdir(path, 0700)
	}
	if err != nil {
		return err
	}
	if dev, _ := identity(info); h.mounted != isMounted(path, dev) || !h.mounted && dev != h.dev {
		return errGone
	}
	return nil
}

package disks

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/slowdisk"
)

// A health has the state of a directory's disk:
//
//   - A failure that has a cause suspends the directory: nothing is written to it until
//     its time is over. While it is unreadable it is not read either, until heal. One that is
//     read-only is over when files can be made in it again.
//   - While the disk is silent the directory is unreadable, as it does not recover before all
//     work that was left behind has ended.
//
// Its lock is held within its methods only, and no other is taken meanwhile.
type health struct {
	dir      string
	suspend  time.Duration
	patience time.Duration
	log      *slog.Logger
	failing  chan struct{} // one token: it is not to be read
	disk     slowdisk.Disk
	listing  sync.WaitGroup // of its names, while it is used

	mu struct {
		sync.Mutex
		failure failure
		full    time.Time // until then the file system counts as full
	}
}

// A failure is why a directory is suspended.
type failure struct {
	cause      error
	until      time.Time
	unreadable bool // it is not read either
	readOnly   bool // whatever the time
}

var (
	errStuck      = errors.New("its disk does not answer")
	errUnreadable = errors.New("it is not read now")
	errGone       = errors.New("the directory is gone, or something else is mounted there; bring it back, or mount without it")
)

// errRefused: the disk did not do what a slab needs.
var errRefused = meta.Worded(ErrNoRoom, "its disk refused")

var errFull = meta.Worded(unix.ENOSPC, "no space left on device beside what stays free: free some, or lower --nvme-floor or the budget")

func newHealth(dir string, c Config) *health {
	return &health{dir: dir, suspend: c.Suspend, patience: c.Patience, log: c.Log, failing: make(chan struct{}, 1)}
}

// fail suspends the directory.
func (h *health) fail(cause error, unreadable bool) {
	h.mu.Lock()
	old := h.mu.failure
	now := time.Now()
	h.mu.failure = failure{cause: cause, until: now.Add(h.suspend), unreadable: unreadable || old.unreadable}
	h.mu.Unlock()
	if unreadable {
		select {
		case h.failing <- struct{}{}:
		default:
		}
	}
	if old.cause == nil || unreadable && !old.unreadable || !old.unreadable && now.After(old.until) {
		h.log.Warn("nvme directory suspended", "dir", h.dir, "for", h.suspend, "cause", cause)
	}
}

// mayWrite notes whether files can be made in a directory that is read: if not, why.
func (h *health) mayWrite(err error) {
	h.mu.Lock()
	old := h.mu.failure
	if !old.unreadable && (err != nil || old.readOnly) {
		h.mu.failure = failure{cause: err, readOnly: err != nil}
	}
	h.mu.Unlock()
	switch {
	case old.unreadable:
	case err != nil && !old.readOnly:
		h.log.Warn("nvme directory suspended", "dir", h.dir, "cause", err)
	case err == nil && old.readOnly:
		h.log.Info("nvme directory is used again", "dir", h.dir)
	}
}

// refusal suspends the directory if its disk refused.
func (h *health) refusal(err error) error {
	if errors.Is(err, errRefused) {
		h.fail(err, false)
	}
	return err
}

func refused(err error) error {
	if err == nil || errors.Is(err, ErrNoRoom) {
		return err
	}
	if meta.OutOfFiles(err) {
		return ErrOutOfFiles
	}
	return fmt.Errorf("%w: %w", err, errRefused)
}

// suspended returns why nothing is written to the directory, or nil.
func (h *health) suspended() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := &h.mu.failure; f.cause != nil && (f.unreadable || f.readOnly || time.Now().Before(f.until)) {
		return f.cause
	}
	return nil
}

// unreadable returns why the directory is not read, or nil.
func (h *health) unreadable() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.failure.unreadable {
		return h.mu.failure.cause
	}
	return nil
}

// fault is why nothing is written now, or less than the budget.
func (h *health) fault() error {
	if err := h.suspended(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Now().Before(h.mu.full) {
		return errFull
	}
	return nil
}

// squeezed notes that slabs are given up though the budget has room.
func (h *health) squeezed() {
	h.mu.Lock()
	now := time.Now()
	told := now.Before(h.mu.full)
	h.mu.full = now.Add(h.suspend)
	h.mu.Unlock()
	if !told {
		h.log.Warn("nvme tier makes way", "dir", h.dir, "cause", errFull)
	}
}

// rest is the time for which the directory is not read; ok if it may be read.
func (h *health) rest() (wait time.Duration, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.mu.failure.until), !h.mu.failure.unreadable
}

// heal ends the failure.
func (h *health) heal() {
	h.mu.Lock()
	h.mu.failure = failure{}
	h.mu.Unlock()
	h.log.Info("nvme directory is used again", "dir", h.dir)
}

// idle waits until the disk has answered all that it was asked, for as long as its
// patience lasts.
func (h *health) idle() error {
	idle := make(chan struct{})
	go func() { h.listing.Wait(); h.disk.Wait(); close(idle) }()
	timer := time.NewTimer(h.patience)
	defer timer.Stop()
	select {
	case <-idle:
		return nil
	case <-timer.C:
		return fmt.Errorf("close nvme directory %s: %w", h.dir, errStuck)
	}
}

package diskdir

import (
	"log/slog"
	"sync"
	"time"

	"rankfs/meta/slowdisk"
)

// A Health has the state of a directory's disk:
//
//   - A failure suspends the directory: nothing is written to it until its time is over. While it is
//     unreadable it is not read either, until Heal. One that is read-only is over when files can be
//     made in it again.
//   - While the disk is silent the directory is suspended.
//
// Its lock is held within its methods only, and no other but the disk's is taken meanwhile.
type Health struct {
	Name    string // of directories of its kind, for people
	Dir     string
	Suspend time.Duration // by a failure
	Log     *slog.Logger
	Failing chan struct{} // is given a token when it is not to be read; nil: no goroutine waits for that
	Disk    slowdisk.Disk // as what writes there finds it

	mu struct {
		sync.Mutex
		failure failure
	}
}

// A failure is why a directory is suspended.
type failure struct {
	cause      error
	until      time.Time
	unreadable bool // it is not read either
	readOnly   bool // whatever the time
}

// Fail suspends the directory.
func (h *Health) Fail(cause error, unreadable bool) {
	h.mu.Lock()
	old := h.mu.failure
	now := time.Now()
	h.mu.failure = failure{cause: cause, until: now.Add(h.Suspend), unreadable: unreadable || old.unreadable}
	h.mu.Unlock()
	if unreadable {
		select {
		case h.Failing <- struct{}{}:
		default:
		}
	}
	if old.cause == nil || unreadable && !old.unreadable || !old.unreadable && !now.Before(old.until) {
		h.Log.Warn(h.Name+" suspended", "dir", h.Dir, "for", h.Suspend, "cause", cause)
	}
}

// MayWrite notes whether files can be made in a directory that is read: if not, why.
func (h *Health) MayWrite(err error) {
	h.mu.Lock()
	old := h.mu.failure
	if !old.unreadable && (err != nil || old.readOnly) {
		h.mu.failure = failure{cause: err, readOnly: err != nil}
	}
	h.mu.Unlock()
	switch {
	case old.unreadable:
	case err != nil && !old.readOnly:
		h.Log.Warn(h.Name+" suspended", "dir", h.Dir, "cause", err)
	case err == nil && old.readOnly:
		h.Log.Info(h.Name+" is used again", "dir", h.Dir)
	}
}

// Suspended returns why nothing is written to the directory, or nil.
func (h *Health) Suspended() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := &h.mu.failure; f.cause != nil && (f.unreadable || f.readOnly || time.Now().Before(f.until)) {
		return f.cause
	}
	if h.Disk.Silent() {
		return slowdisk.ErrSilent
	}
	return nil
}

// Unreadable returns why the directory is not read, or nil.
func (h *Health) Unreadable() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.failure.unreadable {
		return h.mu.failure.cause
	}
	return nil
}

// Heal ends the failure.
func (h *Health) Heal() {
	h.mu.Lock()
	h.mu.failure = failure{}
	h.mu.Unlock()
	h.Log.Info(h.Name+" is used again", "dir", h.Dir)
}

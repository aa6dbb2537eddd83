package disks

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/diskdir"
)

// A health has the state of a directory. While its disk is silent the directory is unreadable, as
// it does not recover before all work that was left behind has ended.
//
// Its lock is held within its methods only, and no other is taken meanwhile.
type health struct {
	diskdir.Health
	patience time.Duration
	listing  sync.WaitGroup // of its names, while it is used

	mu struct {
		sync.Mutex
		full time.Time // until then the file system counts as full
	}
}

var (
	errStuck      = errors.New("its disk does not answer")
	errUnreadable = errors.New("it is not read now")
)

// errRefused: the disk did not do what a slab needs.
var errRefused = meta.Worded(ErrNoRoom, "its disk refused")

var errFull = meta.Worded(unix.ENOSPC, "no space left on device beside what stays free: free some, or lower --nvme-floor or the budget")

func newHealth(dir string, c Config) *health {
	return &health{patience: c.Patience, Health: diskdir.Health{
		Name: "nvme directory", Dir: dir, Suspend: c.Suspend, Log: c.Log, Failing: make(chan struct{}, 1),
	}}
}

// refusal suspends the directory if its disk refused.
func (h *health) refusal(err error) error {
	if errors.Is(err, errRefused) {
		h.Fail(err, false)
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

// fault is why nothing is written now, or less than the budget.
func (h *health) fault() error {
	if err := h.Suspended(); err != nil {
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
	h.mu.full = now.Add(h.Suspend)
	h.mu.Unlock()
	if !told {
		h.Log.Warn("nvme tier makes way", "dir", h.Dir, "cause", errFull)
	}
}

// idle waits until the disk has answered all that it was asked, for as long as its
// patience lasts.
func (h *health) idle() error {
	idle := make(chan struct{})
	go func() { h.listing.Wait(); h.Disk.Wait(); close(idle) }()
	timer := time.NewTimer(h.patience)
	defer timer.Stop()
	select {
	case <-idle:
		return nil
	case <-timer.C:
		return fmt.Errorf("close nvme directory %s: %w", h.Dir, errStuck)
	}
}

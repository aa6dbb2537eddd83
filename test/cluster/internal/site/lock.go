package site

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A Range names one of the locks that all users of a cluster share: a byte of
// the lock file. The kernel lets go of a lock when its holder ends.
type Range int64

const (
	Starting Range = iota // the process that starts or removes the cluster
	Keeping               // the keeper, while it lives
	Holding               // shared by the processes that want the cluster to stay
	Waiting               // the one that waits for Using; no other overtakes it
	Using                 // shared by tests that break nothing, or for one that does
	Chosen                // the test that chose the cluster, of several that are alike
)

// A Lock is a lock that is held.
type Lock struct{ f *os.File }

// Close lets go of it.
func (l *Lock) Close() error { return l.f.Close() }

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// TryLock takes a lock of the site or returns ErrLocked.
func (s *Site) TryLock(r Range, exclusive bool) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(s.Lock), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(s.Lock, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	kind := int16(unix.F_RDLCK)
	if exclusive {
		kind = unix.F_WRLCK
	}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: int64(r), Len: 1})
	if err == nil {
		return &Lock{f}, nil
	}
	f.Close()
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil, ErrLocked
	}
	return nil, fmt.Errorf("lock %s: %w", s.Lock, err)
}

// WaitLock takes a lock of the site as soon as it is free.
func (s *Site) WaitLock(ctx context.Context, r Range, exclusive bool) (*Lock, error) {
	for {
		l, err := s.TryLock(r, exclusive)
		if !errors.Is(err, ErrLocked) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for cluster %s: %w", s.Name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

package fs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"rankfs/meta"
)

// Errnos turn errors into numbers for the kernel, for both trees, and log them.
type Errnos struct {
	log             *slog.Logger
	count           atomic.Uint64 // of all but names that do not exist, and interrupts
	said, saidNames said
}

// NewErrnos returns errnos that log to l.
func NewErrnos(l *slog.Logger) *Errnos { return &Errnos{log: l} }

// of is the only place where an error becomes a number for the kernel. An
// unknown error is EIO: a false success is worse than a failure. Every error but a
// plain "no such file" and an interrupt is logged, each line once in a second or
// two: the kernel itself repeats a request that got ESTALE.
func (e *Errnos) of(doing, path string, err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	status := statusOf(err)
	switch status {
	case fuse.ENOENT, fuse.EINTR:
		return status
	}
	return e.tell(doing, path, err, status)
}

// tell counts and logs an error that is returned as status.
func (e *Errnos) tell(doing, path string, err error, status fuse.Status) fuse.Status {
	e.count.Add(1)
	s, most := &e.said, 1024
	if status == fuse.EINVAL { // lookups of made-up names must not fill the log
		s, most = &e.saidNames, 16
	}
	again, left := s.again(doing+path+err.Error(), most, time.Now())
	if left > 0 {
		e.log.Warn("errors not logged: too many at once", "lines", left)
	}
	if again {
		return status
	}
	e.log.Warn(doing, "path", path, "errno", syscall.Errno(status).Error(), "cause", err)
	return status
}

// said is the set of lines logged in the second that began at since, and in the
// second before it: the kernel's repeated request may fall into the next second. The lock
// guards all of it; nothing is logged under it.
type said struct {
	mu struct {
		sync.Mutex
		since         time.Time
		lines, before map[string]bool
		left          int // lines left out since then
	}
}

// again reports whether the line was logged already, or the second has its most
// lines, and enters the line otherwise. In a new second it also returns how many
// lines the last one left out.
func (s *said) again(line string, most int, now time.Time) (again bool, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.lines == nil || now.Sub(s.mu.since) > time.Second {
		left = s.mu.left
		s.mu.before = s.mu.lines
		if now.Sub(s.mu.since) >= 2*time.Second {
			s.mu.before = nil
		}
		s.mu.since, s.mu.lines, s.mu.left = now, make(map[string]bool), 0
	}
	if s.mu.lines[line] || s.mu.before[line] {
		return true, left
	}
	if len(s.mu.lines) >= most {
		s.mu.left++
		return true, left
	}
	s.mu.lines[line] = true
	return false, left
}

func statusOf(err error) fuse.Status {
	for _, known := range []struct {
		err    error
		status syscall.Errno
	}{
		{context.Canceled, syscall.EINTR},
		{meta.ErrNotExist, syscall.ENOENT},
		{meta.ErrInvalid, syscall.EINVAL},
		{meta.ErrStale, syscall.ESTALE},
		{meta.ErrOvertaken, syscall.ESTALE},
		{meta.ErrSetAside, syscall.EOWNERDEAD},
		{meta.ErrCorrupt, syscall.EIO},
		{context.DeadlineExceeded, syscall.ETIMEDOUT},
		{meta.ErrNoSpace, syscall.ENOSPC},
		{meta.ErrBusy, syscall.EBUSY},
		{meta.ErrExist, syscall.EEXIST},
		{meta.ErrQuota, syscall.EDQUOT},
		{meta.ErrUnequal, syscall.EBADMSG},
		{meta.ErrLost, syscall.ENODATA},
		{meta.ErrUnavailable, syscall.EHOSTUNREACH},
		{meta.ErrDenied, syscall.EPERM},
		// The daemon's own lack: a rank would look for it among its own files.
		{syscall.EMFILE, syscall.EBUSY},
		{syscall.ENFILE, syscall.EBUSY},
		{syscall.ENOMEM, syscall.ENOMEM},
		{syscall.EACCES, syscall.EACCES},
	} {
		if errors.Is(err, known.err) {
			return fuse.Status(known.status)
		}
	}
	return fuse.EIO
}

// A request is the context of one kernel request: it ends when the kernel
// withdraws it.
type request struct {
	context.Context
	cancel <-chan struct{}
}

func requestContext(cancel <-chan struct{}) context.Context {
	return request{Context: context.Background(), cancel: cancel}
}

func (r request) Done() <-chan struct{} { return r.cancel }

func (r request) Err() error {
	select {
	case <-r.cancel:
		return context.Canceled
	default:
		return nil
	}
}

// plainErrno is the errno of the system call that failed.
func plainErrno(err error) syscall.Errno {
	var errno syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &errno):
		return errno
	}
	return syscall.Errno(statusOf(err))
}

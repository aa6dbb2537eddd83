package errnos

import (
	"log/slog"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Errnos turn errors into numbers for the kernel, for both trees, and log them.
type Errnos struct {
	log             *slog.Logger
	count           atomic.Uint64 // of all but names that do not exist, and interrupts
	said, saidNames said
}

// New returns errnos that log to l.
func New(l *slog.Logger) *Errnos { return &Errnos{log: l} }

// Of is the only place where an error becomes a number for the kernel. An
// unknown error is EIO: a false success is worse than a failure. Every error but a
// plain "no such file" and an interrupt is logged, each line once in a second or
// two: the kernel itself repeats a request that got ESTALE.
func (e *Errnos) Of(doing, path string, err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	status := Status(err)
	switch status {
	case fuse.ENOENT, fuse.EINTR:
		return status
	}
	return e.Tell(doing, path, err, status)
}

// Tell counts and logs an error that is returned as status.
func (e *Errnos) Tell(doing, path string, err error, status fuse.Status) fuse.Status {
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

// Count is how many errors there were.
func (e *Errnos) Count() uint64 { return e.count.Load() }

package fs

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"rankfs/meta"
)

// errno is the only place where an error becomes a number for the kernel. What
// it does not know is EIO: a false success is worse than a failure. Everything
// but a plain "no such file" and an interrupt leaves a line in the log, one a
// second: the kernel itself asks twice when it is told ESTALE.
func (t *Tree) errno(doing, path string, err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	status := statusOf(err)
	switch status {
	case fuse.ENOENT, fuse.EINTR:
		return status
	}
	t.count.errors.Add(1)
	if t.said.again(doing+path+err.Error(), time.Now()) {
		return status
	}
	t.config.Log.Warn(doing, "path", path, "errno", syscall.Errno(status).Error(), "cause", err)
	return status
}

// said is what stands in the log of the second that began at since.
type said struct {
	mu struct {
		sync.Mutex
		since time.Time
		lines map[string]bool
	}
}

// again reports whether the line is there already, and enters it.
func (s *said) again(line string, now time.Time) bool {
	const most = 1024 // lines remembered
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.lines == nil || now.Sub(s.mu.since) > time.Second || len(s.mu.lines) >= most {
		s.mu.since, s.mu.lines = now, make(map[string]bool)
	}
	before := s.mu.lines[line]
	s.mu.lines[line] = true
	return before
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
		{meta.ErrCorrupt, syscall.EIO},
		{context.DeadlineExceeded, syscall.ETIMEDOUT},
		{meta.ErrNoSpace, syscall.ENOSPC},
		{meta.ErrBusy, syscall.EBUSY},
		{syscall.EMFILE, syscall.EMFILE},
		{syscall.ENFILE, syscall.ENFILE},
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
	return request{context.Background(), cancel}
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

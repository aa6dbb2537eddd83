package fs

import (
	"context"
	"errors"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"rankfs/meta"
)

// errno is the only place where an error becomes a number for the kernel. What
// it does not know is EIO: a false success is worse than a failure. Everything
// but a plain "no such file" and an interrupt leaves a line in the log.
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
	t.config.Log.Warn(doing, "path", path, "errno", syscall.Errno(status).Error(), "cause", err)
	return status
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

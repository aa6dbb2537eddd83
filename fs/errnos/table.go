package errnos

import (
	"context"
	"errors"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"rankfs/meta"
)

// Status is the number of an error.
func Status(err error) fuse.Status {
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

// Plain is the errno of the system call that failed.
func Plain(err error) syscall.Errno {
	var errno syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &errno):
		return errno
	}
	return syscall.Errno(Status(err))
}

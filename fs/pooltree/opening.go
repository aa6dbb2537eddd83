package pooltree

import (
	"context"
	"errors"
	"os"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Open implements fusefs.NodeOpener.
func (n *scratch) Open(_ context.Context, flags uint32) (h fusefs.FileHandle, _ uint32, errno syscall.Errno) {
	access := n.do
	if writes(flags) {
		access = func(f func(*os.Root) error) syscall.Errno { return n.change(n.path(), f) }
	}
	errno = access(func(root *os.Root) error {
		w, err := openWritten(scratchRoot{root, n.toPut}, n.path(), flags)
		if err == nil {
			h, err = n.opened(w, flags)
		}
		return err
	})
	return h, 0, errno
}

// Create implements fusefs.NodeCreater.
func (n *scratch) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (in *fusefs.Inode, h fusefs.FileHandle, _ uint32, errno syscall.Errno) {
	errno = n.change(n.path(), func(root *os.Root) error {
		w, err := createWritten(scratchRoot{root, n.toPut}, n.path(name), flags, mode)
		if err != nil {
			return err
		}
		if in, err = n.made(ctx, root, name, unix.S_IFREG|mode, out); err != nil {
			return errors.Join(err, w.file.Close())
		}
		h, err = n.opened(w, flags)
		return err
	})
	return in, h, 0, errno
}

// opened is an open file, as that of a job. The kernel has none to write yet when it is
// told that it may, which no lease shows.
func (n *scratch) opened(w *written, flags uint32) (fusefs.FileHandle, error) {
	closed := func() {}
	if n.toPut && writes(flags) {
		var err error
		if closed, err = n.job.job.Blobs.Opened(w.file); err != nil {
			return nil, errors.Join(err, w.file.Close())
		}
	}
	used := use(n.job.job.Uses, flags)
	w.done = func() { closed(); used() }
	if n.toPut {
		w.reserve = w.growing(n.job.job.Blobs.MayGrow)
	}
	return w, nil
}

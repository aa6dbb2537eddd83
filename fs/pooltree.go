package fs

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// A PoolTree serves the pool, by a connection to the kernel of its own: that of the
// datasets is read-only, and is fast because of that.
type PoolTree struct {
	pool      Pool
	log       *slog.Logger
	tree      *Tree // of datasets, which has the errnos
	names     poolNames
	server    *fuse.Server
	served    chan struct{}
	unmounted atomic.Bool
}

// NewPool returns a tree that is mounted nowhere yet, beside the tree of datasets.
func NewPool(p Pool, beside *Tree) *PoolTree {
	t := &PoolTree{pool: p, log: beside.config.Log, tree: beside}
	t.names.init(func(in *fusefs.Inode, name string) { in.NotifyEntry(name) }) // ENOENT: it did not remember it
	return t
}

// Forget has the kernel look up anew the names of jobs and stages that are no more, and
// returns once it does. It must not be called by what answers a request of the kernel.
func (t *PoolTree) Forget() { t.names.forget() }

// Unmount detaches the tree, at once: what programs have open stays open for them. It
// waits for requests under way where nothing is.
func (t *PoolTree) Unmount(dir string) error {
	if t.unmounted.Swap(true) {
		return nil
	}
	err := unix.Unmount(dir, 0)
	switch {
	case err == nil:
		<-t.served
	case errors.Is(err, unix.EBUSY):
		err = unix.Unmount(dir, unix.MNT_DETACH)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT): // by another process
		return nil
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return nil
}

// Gone is closed when the tree is no longer mounted.
func (t *PoolTree) Gone() <-chan struct{} { return t.served }

// refused notes that the kernel does not read and write the files of a file system by itself.
func (t *PoolTree) refused(file string, cause error) {
	if on, _ := t.tree.Passthrough(); !on {
		return // which is known
	}
	t.log.Warn("files of the shuffle pool are read and written through the daemon, as others of their file system", "file", file, "cause", cause)
	reason := fmt.Sprintf("%s: %v", file, cause)
	t.tree.poolRefused.Store(&reason)
}

// PoolRefused is a file of the shuffle pool that the kernel does not read and write by itself
// although it does others, and why; empty if there was none.
func (t *Tree) PoolRefused() string {
	if reason := t.poolRefused.Load(); reason != nil {
		return *reason
	}
	return ""
}

// errno is the number of an error for a program. The error is logged, if it is not an answer that
// programs ask for.
func (t *PoolTree) errno(doing, path string, err error) syscall.Errno {
	var plain syscall.Errno
	if !errors.As(err, &plain) {
		return syscall.Errno(t.tree.errno(doing, path, err))
	}
	switch plain {
	case unix.ENOENT, unix.EINTR, unix.EAGAIN, unix.EEXIST, unix.ENOTEMPTY:
		return plain
	}
	status := statusOf(err)
	if status == fuse.EIO { // of an error that has no other name
		status = fuse.Status(plain)
	}
	return syscall.Errno(t.tree.tell(doing, path, err, status))
}

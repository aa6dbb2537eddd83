package pooltree

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/fs/errnos"
)

// Config says how the tree looks.
type Config struct {
	Pool   Pool
	Errnos *errnos.Errnos // of what fails
	Born   time.Time      // the time of what has none of its own
	// AllowOther lets users other than the daemon's use the mount, as far as modes permit.
	AllowOther bool
	// Passthrough has the kernel read and write files by itself, where it can.
	Passthrough bool
	Log         *slog.Logger
}

// A Tree serves one mount of the pool.
type Tree struct {
	config    Config
	refusal   atomic.Pointer[string]
	names     knownNames
	server    *fuse.Server
	served    chan struct{}
	unmounted atomic.Bool
}

// New returns a tree that is mounted nowhere yet.
func New(c Config) *Tree {
	t := &Tree{config: c}
	t.names.init(func(in *fusefs.Inode, name string) { in.NotifyEntry(name) }) // ENOENT: it did not remember it
	return t
}

// Forget has the kernel look up anew the names of jobs and stages that are no more, and
// returns once it does. It must not be called by what answers a request of the kernel.
func (t *Tree) Forget() { t.names.forget() }

// Unmount detaches the tree, at once: what programs have open stays open for them. It
// waits for requests under way where nothing is.
func (t *Tree) Unmount(dir string) error {
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
func (t *Tree) Gone() <-chan struct{} { return t.served }

// refused notes that the kernel does not read and write the files of a file system by itself.
func (t *Tree) refused(file string, cause error) {
	if !t.config.Passthrough {
		return // which is known
	}
	t.config.Log.Warn("files of the shuffle pool are read and written through the daemon, as others of their file system", "file", file, "cause", cause)
	reason := fmt.Sprintf("%s: %v", file, cause)
	t.refusal.Store(&reason)
}

// Refusal is a file that the kernel does not read and write by itself although it does others,
// and why; empty if there was none.
func (t *Tree) Refusal() string {
	if reason := t.refusal.Load(); reason != nil {
		return *reason
	}
	return ""
}

// errno is the number of an error for a program. The error is logged, if it is not an answer that
// programs ask for.
func (t *Tree) errno(doing, path string, err error) syscall.Errno {
	var plain syscall.Errno
	if !errors.As(err, &plain) {
		return syscall.Errno(t.config.Errnos.Of(doing, path, err))
	}
	switch plain {
	case unix.ENOENT, unix.EINTR, unix.EAGAIN, unix.EEXIST, unix.ENOTEMPTY:
		return plain
	}
	status := errnos.Status(err)
	if status == fuse.EIO { // of an error that has no other name
		status = fuse.Status(plain)
	}
	return syscall.Errno(t.config.Errnos.Tell(doing, path, err, status))
}

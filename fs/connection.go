package fs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/fs/device"
	"rankfs/meta/mountinfo"
)

// A connection serves a tree to the kernel, and tells the kernel what it has not asked for:
// that a queue is ready, or that names are gone. Its exported methods may be called
// concurrently once the tree is mounted; what is set by then does not change.
type connection struct {
	log         *slog.Logger
	server      *fuse.Server
	device      *os.File      // the mount's /dev/fuse, once more
	served      chan struct{} // closed when the mount is gone
	unmounted   atomic.Bool
	passthrough atomic.Bool
	reason      string // why passthrough is off

	watches    context.Context // of queues; ends with the mount
	endWatches context.CancelFunc
	notices    notices
}

func (c *connection) init(log *slog.Logger) {
	c.log = log
	c.watches, c.endWatches = context.WithCancel(context.Background())
}

// attach opens and mounts a /dev/fuse, whose descriptor is the library's from then
// on. The tree keeps a duplicate, to which notify writes. The library could mount by
// itself, but would not share its descriptor, and would poll a file of its own so
// that the kernel stops sending POLL.
func (c *connection) attach(dir string, allowOther bool) (fd int, err error) {
	var at unix.Stat_t
	if err := unix.Stat(dir, &at); err != nil {
		return -1, err
	}
	// Read-only for the kernel too: see the package comment.
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY
	if fd, err = device.Mount(dir, at.Mode, flags, allowOther); err != nil {
		return -1, err
	}
	ours, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, errors.Join(err, unix.Unmount(dir, unix.MNT_DETACH), unix.Close(fd))
	}
	c.device = os.NewFile(uintptr(ours), "/dev/fuse")
	return fd, nil
}

// serve answers requests until the tree is no longer mounted.
func (c *connection) serve() {
	defer close(c.served)
	c.server.Serve()
	c.endWatches()
	c.notices.end()
	c.device.Close()
}

// probe finds out, with a file of its own, whether the kernel serves reads of
// a backing file by itself.
func (c *connection) probe() {
	fd, err := unix.MemfdCreate("rankfs-probe", unix.MFD_CLOEXEC)
	if err != nil {
		c.reason = fmt.Sprintf("no file to probe with: %v", err)
		return
	}
	defer unix.Close(fd)
	id, err := c.register(fd)
	if err != nil {
		c.reason = fmt.Sprintf("the kernel refused a backing file: %v; it takes Linux 6.9 with CONFIG_FUSE_PASSTHROUGH, and root", err)
		return
	}
	c.server.UnregisterBackingFd(id)
	c.passthrough.Store(true)
}

// Passthrough reports whether batches are read and mapped without the daemon,
// and if not, why.
func (c *connection) Passthrough() (on bool, reason string) {
	return c.passthrough.Load(), c.reason
}

// Register makes a slab's file known to the kernel, ahead of the opens that
// will name it. Without passthrough there is nothing to register.
func (c *connection) Register(fd int) (int32, error) {
	if !c.passthrough.Load() {
		return 0, nil
	}
	return c.register(fd)
}

func (c *connection) register(fd int) (int32, error) {
	id, errno := c.server.RegisterBackingFd(&fuse.BackingMap{Fd: int32(fd)})
	if errno != 0 {
		return 0, errno
	}
	return id, nil
}

// Unregister takes back what Register made known. Files that are open by the
// id stay open.
func (c *connection) Unregister(id int32) {
	if id != 0 {
		c.server.UnregisterBackingFd(id)
	}
}

// readAhead lets the kernel ask for more at a time than its 128 KiB where
// reads come to the daemon: it halves the time of a first pass over a mapping.
func (c *connection) readAhead(dir string) {
	device, err := deviceOf(dir)
	if err == nil {
		err = os.WriteFile("/sys/class/bdi/"+device+"/read_ahead_kb", []byte("1024"), 0644)
	}
	if err != nil {
		c.log.Warn("readahead stays at the kernel's default", "cause", err)
	}
}

// deviceOf finds the device number of a mount of ours without touching it.
func deviceOf(dir string) (string, error) {
	table, err := mountinfo.Read()
	if err != nil {
		return "", err
	}
	m, ok := mountinfo.At(table, dir)
	if !ok || m.Type != mountinfo.FSType {
		return "", fmt.Errorf("%s is not in the mount table", dir)
	}
	return m.Device, nil
}

// Wait returns when the tree is no longer mounted and every request is
// answered.
func (c *connection) Wait() { <-c.served }

// Unmount detaches the tree and waits for requests under way. If ranks have
// files open the mount is detached all the same when force is set: what they
// opened stays readable, but Wait would wait for them, so it is not waited for.
func (c *connection) Unmount(dir string, force bool) error {
	err := c.detach(dir)
	if errors.Is(err, syscall.EBUSY) && force {
		if err = unix.Unmount(dir, unix.MNT_DETACH); err == nil {
			c.unmounted.Store(true)
			c.endWatches()
			return nil
		}
	}
	if errors.Is(err, syscall.EINVAL) { // already unmounted, by another process
		err = nil
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	c.unmounted.Store(true)
	c.Wait()
	return nil
}

// detach unmounts the tree, if that was not done. The kernel may yet be at work
// on the close of a file, so it is given some time for it.
func (c *connection) detach(dir string) (err error) {
	pause := 5 * time.Millisecond
	for range 5 {
		if c.unmounted.Load() {
			return nil
		}
		if err = unix.Unmount(dir, 0); !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(pause)
		pause = 2*pause + 5*time.Millisecond
	}
	return err
}

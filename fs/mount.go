package fs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Type is what the kernel calls a mount of ours: fuse.rankfs.
const Type = "rankfs"

// Mount attaches the tree to a directory and serves it until Unmount, or until
// somebody else unmounts it.
func (t *Tree) Mount(dir string) (err error) {
	options := &fuse.MountOptions{
		Name: Type, FsName: Type,
		AllowOther: t.config.AllowOther,
		// Without default_permissions the kernel would let everybody in
		// whom allow_other lets near.
		Options: []string{"default_permissions"},
		// Read-only for the kernel too: see the package comment.
		DirectMountFlags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY,
		// fusermount would need a setuid helper and knows less.
		DirectMountStrict: true,
		MaxWrite:          1 << 20, // what a READ may ask for, where reads come here
		MaxBackground:     64,
		// A plain ls of a million names must not make a million inodes.
		ExtraCapabilities:    fuse.CAP_READDIRPLUS_AUTO,
		IgnoreSecurityLabels: true,
		Logger:               newLogger(t.config.Log),
	}
	if t.server, err = fuse.NewServer(t, dir, options); err != nil {
		return fmt.Errorf("mount %s: %w", dir, explain(err))
	}
	t.probe()
	if !t.passthrough.Load() {
		t.readAhead(dir)
	}
	go t.server.Serve()
	return t.server.WaitMount()
}

func explain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: rankfs must run as root", err)
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%w: is there a /dev/fuse, and the directory?", err)
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%w: this kernel has no FUSE: modprobe fuse", err)
	}
	return err
}

// probe finds out, with a file of its own, whether the kernel serves reads of
// a backing file by itself.
func (t *Tree) probe() {
	if t.config.NoPassthrough {
		t.reason = "switched off at mount"
		return
	}
	fd, err := unix.MemfdCreate("rankfs-probe", unix.MFD_CLOEXEC)
	if err != nil {
		t.reason = fmt.Sprintf("no file to probe with: %v", err)
		return
	}
	defer unix.Close(fd)
	id, err := t.register(fd)
	if err != nil {
		t.reason = fmt.Sprintf("the kernel refused a backing file: %v; it takes Linux 6.9 with CONFIG_FUSE_PASSTHROUGH, and root", err)
		return
	}
	t.server.UnregisterBackingFd(id)
	t.passthrough.Store(true)
}

// Passthrough reports whether batches are read and mapped without the daemon,
// and if not, why.
func (t *Tree) Passthrough() (on bool, reason string) {
	return t.passthrough.Load(), t.reason
}

// Register makes a slab's file known to the kernel, ahead of the opens that
// will name it. Without passthrough there is nothing to register.
func (t *Tree) Register(fd int) (int32, error) {
	if !t.passthrough.Load() {
		return 0, nil
	}
	return t.register(fd)
}

func (t *Tree) register(fd int) (int32, error) {
	id, errno := t.server.RegisterBackingFd(&fuse.BackingMap{Fd: int32(fd)})
	if errno != 0 {
		return 0, errno
	}
	return id, nil
}

// Unregister takes back what Register made known. Files that are open by the
// id stay open.
func (t *Tree) Unregister(id int32) {
	if id != 0 {
		t.server.UnregisterBackingFd(id)
	}
}

// readAhead lets the kernel ask for more at a time than its 128 KiB where
// reads come to the daemon: it halves the time of a first pass over a mapping.
func (t *Tree) readAhead(dir string) {
	device, err := deviceOf(dir)
	if err == nil {
		err = os.WriteFile("/sys/class/bdi/"+device+"/read_ahead_kb", []byte("1024"), 0644)
	}
	if err != nil {
		t.config.Log.Warn("readahead stays at the kernel's default", "cause", err)
	}
}

// deviceOf finds the device number of a mount of ours without touching it.
func deviceOf(dir string) (string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	device := ""
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == dir && strings.Contains(line, " - fuse."+Type+" ") {
			device = f[2]
		}
	}
	if device == "" {
		return "", fmt.Errorf("%s is not in the mount table", dir)
	}
	return device, nil
}

// Wait returns when the tree is no longer mounted and every request is
// answered.
func (t *Tree) Wait() {
	t.server.Wait()
	t.notices.Wait()
}

// Unmount detaches the tree and waits for requests under way. If ranks have
// files open the mount is detached all the same when force is set: what they
// opened stays readable, but Wait would wait for them, so it is not waited for.
func (t *Tree) Unmount(dir string, force bool) error {
	err := t.server.Unmount()
	if errors.Is(err, syscall.EBUSY) && force {
		if err = unix.Unmount(dir, unix.MNT_DETACH); err == nil {
			return nil
		}
	}
	if errors.Is(err, syscall.EINVAL) { // somebody was quicker
		err = nil
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	t.Wait()
	return nil
}

package disks_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/test/eventually"
)

// Mounts of tests are below such a directory, which is named for its process.
const imagesPrefix = "/tmp/rankfs-disks-"

func TestMain(m *testing.M) {
	unmountLeftovers()
	code := m.Run()
	os.RemoveAll(imagesPrefix + strconv.Itoa(os.Getpid()))
	os.Exit(code)
}

// unmountLeftovers removes what runs that were killed have left. Their loop
// devices go with the mounts.
func unmountLeftovers() {
	dirs, _ := filepath.Glob(imagesPrefix + "*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(strings.TrimPrefix(dir, imagesPrefix))
		if err != nil || unix.Kill(pid, 0) == nil {
			continue
		}
		mounts, _ := filepath.Glob(dir + "/*/mnt")
		for _, mount := range mounts {
			thaw(mount)
			_ = unix.Unmount(mount, unix.MNT_DETACH)
		}
		os.RemoveAll(dir)
	}
}

// newMountPoint makes a directory with a mount point mnt in it, which is
// removed when what the test mounts is unmounted.
func newMountPoint(t testing.TB) string {
	t.Helper()
	top := imagesPrefix + strconv.Itoa(os.Getpid())
	must(t, os.MkdirAll(top, 0o700))
	dir, err := os.MkdirTemp(top, "")
	must(t, err)
	must(t, os.Mkdir(dir+"/mnt", 0o700))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// An image is a file system of a test, in a file.
type image struct {
	t    testing.TB
	file string
	mnt  string
	slab string // a directory in it
}

// newImage makes an ext4 and mounts it.
func newImage(t testing.TB, mib int) *image {
	t.Helper()
	dir := newMountPoint(t)
	i := &image{t: t, file: dir + "/image", mnt: dir + "/mnt", slab: dir + "/mnt/slabs"}
	f, err := os.Create(i.file)
	must(t, err)
	must(t, f.Truncate(int64(mib)<<20))
	f.Close()
	i.run("mkfs.ext4", "-q", "-F", i.file)
	i.mount()
	t.Cleanup(func() {
		thaw(i.mnt)
		if err := unix.Unmount(i.mnt, 0); err != nil && err != unix.EINVAL { // not mounted
			t.Errorf("umount: %v", err)
			_ = unix.Unmount(i.mnt, unix.MNT_DETACH)
		}
	})
	return i
}

func (i *image) run(command ...string) {
	i.t.Helper()
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		i.t.Fatalf("%v: %v: %s", command, err, out)
	}
}

func (i *image) mount() { i.t.Helper(); i.run("mount", "-o", "loop", i.file, i.mnt) }

func (i *image) unmount() {
	i.t.Helper()
	eventually.True(i.t, "no process uses the file system", func() bool { return unix.Unmount(i.mnt, 0) != unix.EBUSY })
}

func (i *image) ioctl(request uint, arg int) {
	i.t.Helper()
	if err := ioctl(i.mnt, request, arg); err != nil {
		i.t.Fatalf("ioctl %x: %v", request, err)
	}
}

func ioctl(dir string, request uint, arg int) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.IoctlSetPointerInt(int(f.Fd()), request, arg)
}

const (
	shutdown = 0x8004587d // EXT4_IOC_SHUTDOWN
	freeze   = 0xc0045877 // FIFREEZE
	unfreeze = 0xc0045878 // FITHAW
)

// fail makes all that is asked of the file system an error.
func (i *image) fail() { i.ioctl(shutdown, 1) }

// cutPower makes it fail with all that is not on the disk yet lost.
func (i *image) cutPower() { i.ioctl(shutdown, 2) }

// revive mounts it anew, from a copy: the file system that failed lives on where
// another process has just made a mount namespace, which has all mounts of that
// moment, and a mount of the same file would be of that one.
func (i *image) revive() {
	i.t.Helper()
	i.unmount()
	again := i.file + "+"
	i.run("cp", "--sparse=always", i.file, again)
	must(i.t, os.Remove(i.file))
	i.file = again
	i.mount()
}

func thaw(mnt string) { _ = ioctl(mnt, unfreeze, 0) }

// syncNames brings all names to the disk, and no bytes of slabs.
func (i *image) syncNames() {
	i.t.Helper()
	d, err := os.Open(i.slab)
	must(i.t, err)
	defer d.Close()
	must(i.t, d.Sync())
}

// fillUp leaves so many bytes of the file system free.
func (i *image) fillUp(left int64) {
	i.t.Helper()
	f, err := os.Create(i.mnt + "/filler")
	must(i.t, err)
	defer f.Close()
	free := i.free() - left
	must(i.t, unix.Fallocate(int(f.Fd()), 0, 0, free))
}

func (i *image) free() int64 {
	i.t.Helper()
	var s unix.Statfs_t
	must(i.t, unix.Statfs(i.mnt, &s))
	return int64(s.Bavail) * s.Bsize
}

func (i *image) String() string { return fmt.Sprintf("%s on %s", i.file, i.mnt) }

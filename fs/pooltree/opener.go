package pooltree

import (
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// An opener opens files by their names: below a directory, as an os.Root, a scratchRoot or
// ownFiles, or those that are open.
type opener interface {
	OpenFile(name string, flag int, perm os.FileMode) (*os.File, error)
}

// A changer changes what files have beside their bytes, by the names of an opener.
type changer interface {
	Chmod(name string, mode os.FileMode) error
	Lchown(name string, uid, gid int) error
	Lutimes(name string, times []unix.Timespec) error // of a link itself, too
}

// openFiles are the files that the daemon has open, by the numbers of their descriptors: what
// a handle is of, also when another file has its name by now, or none has.
type openFiles struct{}

func (openFiles) at(name string) string { return "/proc/self/fd/" + name }

// OpenFile implements opener.
func (o openFiles) OpenFile(name string, flag int, perm os.FileMode) (*os.File, error) {
	return os.OpenFile(o.at(name), flag, perm)
}

// Chmod implements changer.
func (o openFiles) Chmod(name string, mode os.FileMode) error { return os.Chmod(o.at(name), mode) }

// Lchown implements changer.
func (o openFiles) Lchown(name string, uid, gid int) error { return os.Chown(o.at(name), uid, gid) }

// Lutimes implements changer.
func (o openFiles) Lutimes(name string, times []unix.Timespec) error {
	return unix.UtimesNanoAt(unix.AT_FDCWD, o.at(name), times, 0)
}

// ownFiles is a directory in which programs name no directories and no links, but files alone,
// so that no name leads elsewhere. By it each call is one system call, where an os.Root
// opens each of the directories on the way: a map has a dozen of calls until it is committed.
type ownFiles string

func (o ownFiles) at(name string) string { return string(o) + "/" + name }

// OpenFile implements opener.
func (o ownFiles) OpenFile(name string, flag int, perm os.FileMode) (*os.File, error) {
	for {
		fd, err := unix.Open(o.at(name), flag|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(perm))
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), o.at(name)), nil
		case !errors.Is(err, unix.EINTR):
			return nil, &os.PathError{Op: "open", Path: o.at(name), Err: err}
		}
	}
}

// Lstat looks at a file.
func (o ownFiles) Lstat(name string) (os.FileInfo, error) { return os.Lstat(o.at(name)) }

// Chmod implements changer.
func (o ownFiles) Chmod(name string, mode os.FileMode) error { return os.Chmod(o.at(name), mode) }

// Lchown implements changer.
func (o ownFiles) Lchown(name string, uid, gid int) error { return os.Lchown(o.at(name), uid, gid) }

// Lutimes implements changer.
func (o ownFiles) Lutimes(name string, times []unix.Timespec) error {
	return unix.UtimesNanoAt(unix.AT_FDCWD, o.at(name), times, unix.AT_SYMLINK_NOFOLLOW)
}

// A scratchRoot is the directory of a job's files, which a link does not lead out of. What may
// become a blob is no pipe, and is waited for while it is put.
type scratchRoot struct {
	*os.Root
	toPut bool
}

// OpenFile implements opener. A pipe that a rename put in the place of a file has no other end
// to wait for.
func (r scratchRoot) OpenFile(name string, flag int, perm os.FileMode) (*os.File, error) {
	if !r.toPut {
		flag |= unix.O_NONBLOCK
	}
	return r.Root.OpenFile(name, flag, perm)
}

// Lutimes implements changer.
func (r scratchRoot) Lutimes(name string, times []unix.Timespec) error {
	dir, err := r.OpenFile(path.Dir(name), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.UtimesNanoAt(int(dir.Fd()), path.Base(name), times, unix.AT_SYMLINK_NOFOLLOW)
}

// permissions are the permissions of a mode, but not that a program runs as another user: there the
// pool is mounted without.
func permissions(mode uint32) os.FileMode {
	m := os.FileMode(mode & 0777)
	if mode&unix.S_ISGID != 0 {
		m |= os.ModeSetgid
	}
	if mode&unix.S_ISVTX != 0 {
		m |= os.ModeSticky
	}
	return m
}

// list reads the names of a directory.
func list(root opener, name string) (entries []fuse.DirEntry, err error) {
	d, err := root.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	infos, err := d.ReadDir(-1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for _, info := range infos {
		entries = append(entries, fuse.DirEntry{Name: info.Name(), Mode: uint32(modeOf(info.Type()))})
	}
	slices.SortFunc(entries, func(a, b fuse.DirEntry) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return entries, nil
}

func modeOf(m os.FileMode) int {
	switch {
	case m.IsDir():
		return unix.S_IFDIR
	case m&os.ModeSymlink != 0:
		return unix.S_IFLNK
	case m&os.ModeNamedPipe != 0:
		return unix.S_IFIFO
	case m&os.ModeSocket != 0:
		return unix.S_IFSOCK
	}
	return unix.S_IFREG
}

func statfs(root *os.Root, out *fuse.StatfsOut) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	var s syscall.Statfs_t
	if err := syscall.Fstatfs(int(d.Fd()), &s); err != nil {
		return err
	}
	out.FromStatfsT(&s)
	return nil
}

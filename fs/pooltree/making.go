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

// Mkdir implements fusefs.NodeMkdirer.
func (n *scratch) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (in *fusefs.Inode, errno syscall.Errno) {
	errno = n.change(n.path(), func(root *os.Root) error {
		if err := root.Mkdir(n.path(name), os.FileMode(mode&0777)); err != nil {
			return err
		}
		var err error
		in, err = n.made(ctx, root, name, unix.S_IFDIR|mode, out)
		return err
	})
	return in, errno
}

// Symlink implements fusefs.NodeSymlinker.
func (n *scratch) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (in *fusefs.Inode, errno syscall.Errno) {
	errno = n.change(n.path(), func(root *os.Root) error {
		if err := root.Symlink(target, n.path(name)); err != nil {
			return err
		}
		var err error
		in, err = n.made(ctx, root, name, unix.S_IFLNK, out)
		return err
	})
	return in, errno
}

// Mknod implements fusefs.NodeMknoder. There are no devices: the pool is mounted without
// them. A blob is a file.
func (n *scratch) Mknod(ctx context.Context, name string, mode, _ uint32, out *fuse.EntryOut) (in *fusefs.Inode, errno syscall.Errno) {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFIFO, unix.S_IFSOCK:
		if n.toPut {
			return nil, syscall.EPERM
		}
	default:
		return nil, syscall.EPERM
	}
	errno = n.change(n.path(), func(root *os.Root) error {
		dir, err := root.Open(n.path())
		if err != nil {
			return err
		}
		defer dir.Close()
		if err := unix.Mknodat(int(dir.Fd()), name, mode&(unix.S_IFMT|0777), 0); err != nil {
			return err
		}
		in, err = n.made(ctx, root, name, mode, out)
		return err
	})
	return in, errno
}

// made gives what was made to the user that asked for it, with the mode that it is to have
// whatever the daemon's umask is, and looks at it. In a directory that is for one group it
// stays that group's.
func (n *scratch) made(ctx context.Context, root *os.Root, name string, mode uint32, out *fuse.EntryOut) (*fusefs.Inode, error) {
	if err := n.give(ctx, root, n.path(name), mode); err != nil {
		return nil, errors.Join(err, root.Remove(n.path(name)))
	}
	return n.child(ctx, root, name, out)
}

func (n *scratch) give(ctx context.Context, root *os.Root, name string, mode uint32) error {
	dir, err := root.Lstat(n.path())
	if err != nil {
		return err
	}
	ofGroup := dir.Mode()&os.ModeSetgid != 0
	if caller, ok := fuse.FromContext(ctx); ok {
		gid := int(caller.Gid)
		if ofGroup {
			gid = -1
		}
		if err := root.Lchown(name, int(caller.Uid), gid); err != nil {
			return err
		}
	}
	switch mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return nil
	case unix.S_IFDIR:
		if ofGroup {
			mode |= unix.S_ISGID
		}
	}
	return root.Chmod(name, permissions(mode))
}

// Link implements fusefs.NodeLinker.
func (n *scratch) Link(ctx context.Context, of fusefs.InodeEmbedder, name string, out *fuse.EntryOut) (in *fusefs.Inode, errno syscall.Errno) {
	was, ok := of.(*scratch)
	switch {
	case !ok || was.job != n.job:
		return nil, syscall.EXDEV
	case was.toPut || n.toPut:
		return nil, syscall.EPERM
	}
	errno = n.do(func(root *os.Root) error {
		if err := root.Link(was.path(), n.path(name)); err != nil {
			return err
		}
		var err error
		in, err = n.child(ctx, root, name, out)
		return err
	})
	return in, errno
}

// Unlink implements fusefs.NodeUnlinker.
func (n *scratch) Unlink(_ context.Context, name string) syscall.Errno {
	return n.change(n.path(), func(root *os.Root) error { return root.Remove(n.path(name)) })
}

// Rmdir implements fusefs.NodeRmdirer.
func (n *scratch) Rmdir(_ context.Context, name string) syscall.Errno {
	return n.change(n.path(), func(root *os.Root) error { return root.Remove(n.path(name)) })
}

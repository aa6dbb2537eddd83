package pooltree

import (
	"context"
	"os"
	"path"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"golang.org/x/sys/unix"
)

// Rename implements fusefs.NodeRenamer.
func (n *scratch) Rename(ctx context.Context, name string, to fusefs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	dir, ok := to.(receiver)
	if !ok {
		return syscall.EXDEV
	}
	target, errno := dir.receive(ctx, n, name, newName, flags)
	if errno != 0 || target == nil {
		return errno
	}
	if target.job != n.job || target.toPut != n.toPut {
		return syscall.EXDEV
	}
	from, at := n.path(name), target.path(newName)
	if n.toPut {
		done, err := n.job.job.Blobs.Write(at)
		if err != nil {
			return n.job.tree.errno("rename", path.Join(n.job.name, at), err)
		}
		defer done()
	}
	return n.change(from, func(root *os.Root) error {
		switch flags {
		case 0:
			return root.Rename(from, at)
		case unix.RENAME_NOREPLACE:
			if _, err := root.Lstat(at); err == nil {
				return syscall.EEXIST
			}
			return root.Rename(from, at)
		}
		return syscall.EINVAL
	})
}

// A receiver is a directory that a rename may move a file into.
type receiver interface {
	// receive has the directory on this node that the file of that name in from is to be
	// moved into; or none, if it has done with the file itself what the rename is for.
	receive(ctx context.Context, from *scratch, name, newName string, flags uint32) (*scratch, syscall.Errno)
}

func (n *scratch) receive(context.Context, *scratch, string, string, uint32) (*scratch, syscall.Errno) {
	return n, 0
}

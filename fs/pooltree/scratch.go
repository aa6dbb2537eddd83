package pooltree

import (
	"context"
	"os"
	"path"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"rankfs/fs/errnos"
)

// scratchTimeout is how long the kernel may believe what it knows of files that only
// this mount changes.
const scratchTimeout = time.Second

// A scratch is a file or directory of a job on this node, as it is in a directory of
// its own. It has no state that changes and no lock:
//
//   - What it does is done by system calls on the job's files, which package pool owns,
//     within do or change. By their os.Root no name and no symbolic link leads out of them.
//   - Where it is, is said by the library's tree of inodes alone, in path: a rename moves a
//     directory with all below it. So no name is kept, and an open file is known by its
//     handle.
//   - An inode is either one to put or not, and files and links do not go from one kind to the
//     other, nor from job to job: EXDEV, upon which programs copy.
//   - A change of one to put is within Puts.Write, so that none is put meanwhile. One
//     that a program has open to write is within Puts.Opened; that it has mapped one is
//     not known here, but by the lease that a put takes.
type scratch struct {
	fusefs.Inode
	job *ofJob

	toPut bool // it can become a blob: it has one name, and none may write it then
}

// path is where the node is below the job's files. The tree of inodes has the names.
func (n *scratch) path(names ...string) string {
	return path.Join(append([]string{n.Path(n.job.dir)}, names...)...)
}

// do calls f with the job's files.
func (n *scratch) do(f func(root *os.Root) error) syscall.Errno {
	root, err := n.job.job.Files()
	if err == nil {
		err = f(root)
	}
	return errnos.Plain(err)
}

// change calls f with the job's files, to change what is at a path.
func (n *scratch) change(name string, f func(root *os.Root) error) syscall.Errno {
	if n.toPut {
		done, err := n.job.job.Blobs.Write(name)
		if err != nil {
			return n.job.tree.errno("change", path.Join(n.job.name, name), err)
		}
		defer done()
	}
	return n.do(f)
}

// child is the inode of what is at a path, after a look at it.
func (n *scratch) child(ctx context.Context, root *os.Root, name string, out *fuse.EntryOut) (*fusefs.Inode, error) {
	info, err := root.Lstat(n.path(name))
	if err != nil {
		return nil, err
	}
	st := info.Sys().(*syscall.Stat_t)
	out.Attr.FromStat(st)
	out.SetEntryTimeout(scratchTimeout)
	out.SetAttrTimeout(scratchTimeout)
	if n.toPut { // the kernel has the node of what is put under the name of the blob
		out.SetEntryTimeout(0)
	}
	return n.NewInode(ctx, &scratch{job: n.job, toPut: n.toPut}, n.job.stable(st)), nil
}

// Lookup implements fusefs.NodeLookuper.
func (n *scratch) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (in *fusefs.Inode, errno syscall.Errno) {
	errno = n.do(func(root *os.Root) (err error) {
		in, err = n.child(ctx, root, name, out)
		return err
	})
	return in, errno
}

// Readlink implements fusefs.NodeReadlinker.
func (n *scratch) Readlink(context.Context) (target []byte, errno syscall.Errno) {
	errno = n.do(func(root *os.Root) error {
		s, err := root.Readlink(n.path())
		target = []byte(s)
		return err
	})
	return target, errno
}

// Getattr implements fusefs.NodeGetattrer. An open file is known by its handle: its name
// may be another file's by now.
func (n *scratch) Getattr(_ context.Context, h fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if w, ok := h.(*written); ok {
		return w.attributes(out)
	}
	return n.do(func(root *os.Root) error {
		info, err := root.Lstat(n.path())
		if err != nil {
			return err
		}
		out.FromStat(info.Sys().(*syscall.Stat_t))
		return nil
	})
}

// Setattr implements fusefs.NodeSetattrer.
func (n *scratch) Setattr(ctx context.Context, h fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	errno := n.change(n.path(), func(root *os.Root) error {
		of := scratchRoot{root, n.toPut}
		if err := resize(of, n.path(), h, in); err != nil {
			return err
		}
		return setAttributes(of, n.path(), h, in)
	})
	if errno != 0 {
		return errno
	}
	return n.Getattr(ctx, h, out)
}

// Readdir implements fusefs.NodeReaddirer.
func (n *scratch) Readdir(context.Context) (all fusefs.DirStream, errno syscall.Errno) {
	errno = n.do(func(root *os.Root) error {
		entries, err := list(root, n.path())
		all = fusefs.NewListDirStream(entries)
		return err
	})
	return all, errno
}

// Statfs implements fusefs.NodeStatfser.
func (n *scratch) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	return n.do(func(root *os.Root) error { return statfs(root, out) })
}

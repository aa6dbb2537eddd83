package pooltree

import (
	"context"
	"errors"
	"os"
	"path"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

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

// Readlink implements fusefs.NodeReadlinker.
func (n *scratch) Readlink(context.Context) (target []byte, errno syscall.Errno) {
	errno = n.do(func(root *os.Root) error {
		s, err := root.Readlink(n.path())
		target = []byte(s)
		return err
	})
	return target, errno
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

// A receiver is a directory that a rename may move a file into.
type receiver interface {
	// receive has the directory on this node that the file of that name in from is to be
	// moved into; or none, if it has done with the file itself what the rename is for.
	receive(ctx context.Context, from *scratch, name, newName string, flags uint32) (*scratch, syscall.Errno)
}

func (n *scratch) receive(context.Context, *scratch, string, string, uint32) (*scratch, syscall.Errno) {
	return n, 0
}

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

// resize gives a file, or the one that a handle is of, the size that in says, if it says one.
func resize(root opener, name string, h fusefs.FileHandle, in *fuse.SetAttrIn) error {
	size, ok := in.GetSize()
	if !ok {
		return nil
	}
	if w, ok := h.(*written); ok {
		root, name = openFiles{}, w.number()
	}
	f, err := root.OpenFile(name, os.O_WRONLY, 0)
	if err == nil {
		err = errors.Join(f.Truncate(int64(size)), f.Close())
	}
	return err
}

// setAttributes changes what else in says of a file, or of the one that a handle is of.
func setAttributes(root changer, name string, h fusefs.FileHandle, in *fuse.SetAttrIn) error {
	if w, ok := h.(*written); ok {
		root, name = openFiles{}, w.number()
	}
	if mode, ok := in.GetMode(); ok {
		if err := root.Chmod(name, permissions(mode)); err != nil {
			return err
		}
	}
	uid, hasUID := in.GetUID()
	gid, hasGID := in.GetGID()
	if hasUID || hasGID {
		who := [2]int{-1, -1}
		if hasUID {
			who[0] = int(uid)
		}
		if hasGID {
			who[1] = int(gid)
		}
		if err := root.Lchown(name, who[0], who[1]); err != nil {
			return err
		}
	}
	atime, hasAtime := in.GetATime()
	mtime, hasMtime := in.GetMTime()
	if !hasAtime && !hasMtime {
		return nil
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Nsec: unix.UTIME_OMIT}}
	if hasAtime {
		times[0] = timespec(atime)
	}
	if hasMtime {
		times[1] = timespec(mtime)
	}
	return root.Lutimes(name, times)
}

func timespec(t time.Time) unix.Timespec {
	return unix.Timespec{Sec: t.Unix(), Nsec: int64(t.Nanosecond())}
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

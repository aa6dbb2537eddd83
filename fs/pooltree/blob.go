package pooltree

import (
	"context"
	"errors"
	"os"
	"path"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/fs/xattr"
	"rankfs/meta"
)

// A blobDir is the directory blob of a job, or one in it. Names that begin with a dot are
// files and directories of this node, as those in scratch: to rename one to another name
// puts it. All other names are blobs, which all nodes have.
type blobDir struct {
	scratch        // what this node writes, in the directory of the same path
	key     string // empty at the top
}

func newBlobDir(job *ofJob, key string) *blobDir {
	return &blobDir{scratch{job: job, toPut: true}, key}
}

// local reports whether a name is one of this node alone.
func local(name string) bool { return name[0] == '.' }

func (n *blobDir) errno(doing, name string, err error) syscall.Errno {
	return n.job.tree.errno(doing, path.Join(n.job.name, nameBlob, n.key, name), err)
}

func (n *blobDir) all() Blobs { return n.job.job.Blobs }

func (n *blobDir) attributes(a *fuse.Attr) { n.job.attributes(a) }

// Getattr implements fusefs.NodeGetattrer.
func (n *blobDir) Getattr(ctx context.Context, h fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return n.job.Getattr(ctx, h, out)
}

// Setattr implements fusefs.NodeSetattrer.
func (n *blobDir) Setattr(context.Context, fusefs.FileHandle, *fuse.SetAttrIn, *fuse.AttrOut) syscall.Errno {
	return syscall.EPERM
}

// Lookup implements fusefs.NodeLookuper.
func (n *blobDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if local(name) {
		return n.scratch.Lookup(ctx, name, out)
	}
	b, err := n.all().Find(ctx, path.Join(n.key, name))
	if err != nil {
		return nil, n.errno("look up blob", name, err)
	}
	return n.blob(ctx, b, out), 0
}

func (n *blobDir) blob(ctx context.Context, b Blob, out *fuse.EntryOut) *fusefs.Inode {
	if b.Dir {
		d := newBlobDir(n.job, b.Name)
		d.attributes(&out.Attr)
		out.SetAttrTimeout(attributesStay)
		return n.NewInode(ctx, d, fusefs.StableAttr{Mode: syscall.S_IFDIR, Ino: inoBlob | b.Number})
	}
	f := &blobFile{dir: n, is: b}
	f.attributes(&out.Attr)
	out.SetAttrTimeout(attributesStay)
	return n.NewInode(ctx, f, fusefs.StableAttr{Mode: syscall.S_IFREG, Ino: inoBlob | b.Number})
}

// ready makes the directory of what this node writes here.
func (n *blobDir) ready(name string) syscall.Errno {
	if !local(name) {
		return n.errno("create", name, meta.Worded(meta.ErrInvalid,
			"a blob is put by a rename: write a file whose name begins with a dot, as .%s, and rename it to %s", name, name))
	}
	return n.do(func(root *os.Root) error { return root.MkdirAll(n.path(), 0700) })
}

// Create implements fusefs.NodeCreater: programs create what they put later.
func (n *blobDir) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (in *fusefs.Inode, h fusefs.FileHandle, _ uint32, errno syscall.Errno) {
	if errno := n.ready(name); errno != 0 {
		return nil, nil, 0, errno
	}
	if err := n.all().MayGrow(1); err != nil {
		return nil, nil, 0, n.errno("create", name, err)
	}
	return n.scratch.Create(ctx, name, flags, mode, out)
}

// Mkdir implements fusefs.NodeMkdirer.
func (n *blobDir) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if local(name) {
		if errno := n.ready(name); errno != 0 {
			return nil, errno
		}
		return n.scratch.Mkdir(ctx, name, mode, out)
	}
	b, err := n.all().MakeDir(ctx, path.Join(n.key, name))
	if err != nil {
		return nil, n.errno("make directory of blobs", name, err)
	}
	return n.blob(ctx, b, out), 0
}

// Symlink implements fusefs.NodeSymlinker: a blob is no link.
func (n *blobDir) Symlink(context.Context, string, string, *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, syscall.EPERM
}

// Link implements fusefs.NodeLinker: a blob has one name.
func (n *blobDir) Link(context.Context, fusefs.InodeEmbedder, string, *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, syscall.EPERM
}

// Unlink implements fusefs.NodeUnlinker.
func (n *blobDir) Unlink(ctx context.Context, name string) syscall.Errno {
	if local(name) {
		return n.scratch.Unlink(ctx, name)
	}
	b, err := n.all().Find(ctx, path.Join(n.key, name))
	if err == nil {
		err = n.all().Remove(ctx, b)
	}
	return n.errno("remove blob", name, err)
}

// Rmdir implements fusefs.NodeRmdirer.
func (n *blobDir) Rmdir(ctx context.Context, name string) syscall.Errno {
	if local(name) {
		return n.scratch.Rmdir(ctx, name)
	}
	b, err := n.all().Find(ctx, path.Join(n.key, name))
	if err != nil {
		return n.errno("remove directory of blobs", name, err)
	}
	below := newBlobDir(n.job, b.Name)
	if errno := below.isEmpty(ctx, n.path(name)); errno != 0 {
		return errno
	}
	return n.errno("remove directory of blobs", name, n.all().Remove(ctx, b))
}

// isEmpty refuses a directory that has blobs, or files of this node, which are in dir.
func (n *blobDir) isEmpty(ctx context.Context, dir string) syscall.Errno {
	entries, err := n.list(ctx, dir)
	switch {
	case err != nil:
		return n.errno("list blobs", "", err)
	case len(entries) > 0:
		return syscall.ENOTEMPTY
	}
	return 0
}

// clear forgets that there were blobs, if there are none.
func (n *blobDir) clear(ctx context.Context) syscall.Errno {
	if errno := n.isEmpty(ctx, nameBlob); errno != 0 {
		return errno
	}
	err := n.job.job.RemoveStage(ctx, nameBlob)
	if errors.Is(err, meta.ErrNotExist) {
		return 0
	}
	return n.errno("remove blobs", "", err)
}

// Rename implements fusefs.NodeRenamer: it puts what this node has written. A blob keeps its
// name.
func (n *blobDir) Rename(ctx context.Context, name string, to fusefs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	if !local(name) {
		return syscall.EPERM
	}
	return n.scratch.Rename(ctx, name, to, newName, flags)
}

// receive puts what becomes a blob.
func (n *blobDir) receive(ctx context.Context, from *scratch, name, newName string, flags uint32) (*scratch, syscall.Errno) {
	switch {
	case local(newName):
		return &n.scratch, n.ready(newName)
	case !from.toPut || from.job != n.job:
		return nil, syscall.EXDEV
	}
	return nil, n.put(ctx, from.path(name), newName, flags)
}

// put makes a file or directory of this node the blob of a name.
func (n *blobDir) put(ctx context.Context, from, name string, flags uint32) syscall.Errno {
	if flags&^unix.RENAME_NOREPLACE != 0 {
		return syscall.EINVAL
	}
	return n.errno("put", name, n.all().Put(ctx, from, path.Join(n.key, name), flags != 0))
}

// Readdir implements fusefs.NodeReaddirer.
func (n *blobDir) Readdir(ctx context.Context) (fusefs.DirStream, syscall.Errno) {
	entries, err := n.list(ctx, n.path())
	return fusefs.NewListDirStream(entries), n.errno("list blobs", "", err)
}

// list has what this node writes, which is in dir, and the blobs.
func (n *blobDir) list(ctx context.Context, dir string) (entries []fuse.DirEntry, err error) {
	root, err := n.job.job.Files()
	if err != nil {
		return nil, err
	}
	own, err := list(root, dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, e := range own {
		if local(e.Name) {
			entries = append(entries, e)
		}
	}
	all, err := n.all().List(ctx, n.key)
	for _, b := range all {
		mode := uint32(syscall.S_IFREG)
		if b.Dir {
			mode = syscall.S_IFDIR
		}
		entries = append(entries, fuse.DirEntry{Name: path.Base(b.Name), Mode: mode})
	}
	return entries, err
}

// A blobFile is a blob. What is put as its name later is another file.
type blobFile struct {
	fusefs.Inode
	unchanging
	dir *blobDir
	is  Blob
}

func (n *blobFile) attributes(a *fuse.Attr) { n.dir.job.immutable(a, n.is.Size) }

// Getattr implements fusefs.NodeGetattrer.
func (n *blobFile) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.attributes(&out.Attr)
	out.SetTimeout(attributesStay)
	return 0
}

// Open implements fusefs.NodeOpener.
func (n *blobFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if flags&unix.O_ACCMODE != unix.O_RDONLY {
		return nil, 0, syscall.EPERM
	}
	f, err := n.dir.all().Open(ctx, n.is.Number)
	if err != nil {
		return nil, 0, n.dir.errno("open blob", path.Base(n.is.Name), err)
	}
	return &reads{f, n.dir.job.job.Use(false)}, fuse.FOPEN_KEEP_CACHE, 0
}

// Getxattr implements fusefs.NodeGetxattrer.
func (n *blobFile) Getxattr(ctx context.Context, attr string, dest []byte) (uint32, syscall.Errno) {
	if !strings.HasPrefix(attr, xattr.Prefix) {
		return 0, syscall.ENODATA
	}
	now, err := n.dir.all().Find(ctx, n.is.Name)
	switch {
	case err != nil:
		return 0, n.dir.errno("look up blob", path.Base(n.is.Name), err)
	case now.Number != n.is.Number: // it has no name any more
		return 0, syscall.ESTALE
	}
	return answered(now.Attributes.Get(attr, dest))
}

// Listxattr implements fusefs.NodeListxattrer.
func (n *blobFile) Listxattr(_ context.Context, dest []byte) (uint32, syscall.Errno) {
	return answered(n.is.Attributes.Names(dest))
}

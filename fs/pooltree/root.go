package pooltree

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"rankfs/meta"
)

// nameMax bounds a name, as on any other file system.
const nameMax = 255

// A rootDir is the directory of all jobs. Names that change on other nodes are never
// believed for longer than a request, but those of jobs and stages, which the kernel keeps
// until it is told that they are gone; and no attribute is but those of directories, which
// never change.
type rootDir struct {
	fusefs.Inode
	noOthers
	tree *Tree
}

// Getattr implements fusefs.NodeGetattrer. Each user may make jobs, and remove their own.
func (n *rootDir) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode = syscall.S_IFDIR | syscall.S_ISVTX | 0777
	out.Nlink = 2
	setTimes(&out.Attr, n.tree.config.Born)
	out.SetTimeout(attributesStay)
	return 0
}

// Statfs implements fusefs.NodeStatfser. How much room there is a job says.
func (n *rootDir) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	out.Bsize, out.Frsize, out.NameLen = 4096, 4096, nameMax
	return 0
}

// Setattr implements fusefs.NodeSetattrer.
func (n *rootDir) Setattr(context.Context, fusefs.FileHandle, *fuse.SetAttrIn, *fuse.AttrOut) syscall.Errno {
	return syscall.EPERM
}

// Lookup implements fusefs.NodeLookuper.
func (n *rootDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if meta.CheckName(name) != nil {
		return nil, syscall.ENOENT
	}
	j, err := n.tree.config.Pool.Job(ctx, name)
	if err != nil {
		return nil, n.tree.errno("look up job", name, err)
	}
	return n.job(ctx, name, j, out), 0
}

func (n *rootDir) job(ctx context.Context, name string, j Job, out *fuse.EntryOut) *fusefs.Inode {
	d := &jobDir{ofJob: ofJob{tree: n.tree, name: name, job: j}}
	d.dir = d.EmbeddedInode()
	d.attributes(&out.Attr)
	out.SetAttrTimeout(attributesStay)
	n.tree.names.keep(n.EmbeddedInode(), name, j.Named, out)
	return n.NewInode(ctx, d, fusefs.StableAttr{Mode: syscall.S_IFDIR, Ino: inoJob | j.Number()})
}

// Mkdir implements fusefs.NodeMkdirer: it registers a job, on all nodes.
func (n *rootDir) Mkdir(ctx context.Context, name string, _ uint32, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	caller, ok := fuse.FromContext(ctx)
	if !ok {
		return nil, syscall.EPERM
	}
	j, err := n.tree.config.Pool.MakeJob(ctx, name, caller.Uid, caller.Gid)
	if err != nil {
		return nil, n.tree.errno("make job", name, err)
	}
	return n.job(ctx, name, j, out), 0
}

// Rmdir implements fusefs.NodeRmdirer.
func (n *rootDir) Rmdir(ctx context.Context, name string) syscall.Errno {
	err := n.tree.names.remove(n.EmbeddedInode(), name, func() error { return n.tree.config.Pool.RemoveJob(ctx, name) })
	return n.tree.errno("remove job", name, err)
}

// Readdir implements fusefs.NodeReaddirer.
func (n *rootDir) Readdir(ctx context.Context) (fusefs.DirStream, syscall.Errno) {
	names, err := n.tree.config.Pool.Jobs(ctx)
	return directories(names), n.tree.errno("list jobs", "shuffle", err)
}

func directories(names []string) fusefs.DirStream {
	var entries []fuse.DirEntry
	for _, name := range names {
		entries = append(entries, fuse.DirEntry{Name: name, Mode: syscall.S_IFDIR})
	}
	return fusefs.NewListDirStream(entries)
}

// Rename implements fusefs.NodeRenamer: a job keeps its name.
func (n *rootDir) Rename(context.Context, string, fusefs.InodeEmbedder, string, uint32) syscall.Errno {
	return syscall.EPERM
}

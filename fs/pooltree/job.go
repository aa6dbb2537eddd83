package pooltree

import (
	"context"
	"path"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"rankfs/fs/errnos"
	"rankfs/meta"
)

// A jobDir is one job.
type jobDir struct {
	fusefs.Inode
	noOthers
	ofJob
}

// Lookup implements fusefs.NodeLookuper. The names that each job has the kernel may keep: they
// go with the job, whose own name it asks for.
func (n *jobDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	switch name {
	case nameScratch, nameBlob, nameHold:
		out.SetEntryTimeout(attributesStay)
	}
	switch name {
	case nameScratch:
		root, err := n.job.Files()
		if err != nil {
			return nil, n.tree.errno("look up files of job", n.name, err)
		}
		info, err := root.Lstat(name)
		if err != nil {
			return nil, errnos.Plain(err)
		}
		st := info.Sys().(*syscall.Stat_t)
		out.Attr.FromStat(st)
		return n.NewInode(ctx, &scratch{job: &n.ofJob}, n.stable(st)), 0
	case nameBlob:
		d := n.blobs()
		d.attributes(&out.Attr)
		out.SetAttrTimeout(attributesStay)
		return n.NewInode(ctx, d, fusefs.StableAttr{Mode: syscall.S_IFDIR, Ino: inoText | n.job.Number()<<2 | 3}), 0
	case nameHold:
		h := &holdFile{job: &n.ofJob}
		h.attributes(&out.Attr)
		return n.NewInode(ctx, h, fusefs.StableAttr{Mode: syscall.S_IFREG, Ino: inoText | n.job.Number()<<2}), 0
	}
	if meta.CheckName(name) != nil {
		return nil, syscall.ENOENT
	}
	g, err := n.job.Stage(ctx, name)
	if err != nil {
		return nil, n.tree.errno("look up stage", path.Join(n.name, name), err)
	}
	return n.stage(ctx, name, g, out), 0
}

func (n *jobDir) blobs() *blobDir { return newBlobDir(&n.ofJob, "") }

func (n *jobDir) stage(ctx context.Context, name string, g Stage, out *fuse.EntryOut) *fusefs.Inode {
	d := &stageDir{ofStage: ofStage{&n.ofJob, name, g}}
	d.attributes(&out.Attr)
	out.SetAttrTimeout(attributesStay)
	n.tree.names.keep(n.EmbeddedInode(), name, g.Named, out)
	return n.NewInode(ctx, d, fusefs.StableAttr{Mode: syscall.S_IFDIR, Ino: inoStage | g.Number()})
}

// Mkdir implements fusefs.NodeMkdirer.
func (n *jobDir) Mkdir(ctx context.Context, name string, _ uint32, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if name == nameScratch || name == nameHold || name == nameBlob {
		return nil, syscall.EEXIST
	}
	g, err := n.job.MakeStage(ctx, name)
	if err != nil {
		return nil, n.tree.errno("make stage", path.Join(n.name, name), err)
	}
	return n.stage(ctx, name, g, out), 0
}

// Rmdir implements fusefs.NodeRmdirer. The directories scratch and blob go with the job;
// that rm -r may come to that, an empty one can be removed, and is there as long as the job
// is.
func (n *jobDir) Rmdir(ctx context.Context, name string) syscall.Errno {
	if name == nameBlob {
		return n.blobs().clear(ctx)
	}
	if name != nameScratch {
		err := n.tree.names.remove(n.EmbeddedInode(), name, func() error { return n.job.RemoveStage(ctx, name) })
		return n.tree.errno("remove stage", path.Join(n.name, name), err)
	}
	root, err := n.job.Files()
	if err != nil {
		return n.tree.errno("remove files of job", n.name, err)
	}
	entries, err := list(root, name)
	if err == nil && len(entries) > 0 {
		return syscall.ENOTEMPTY
	}
	return errnos.Plain(err)
}

// Unlink implements fusefs.NodeUnlinker: hold goes with the job.
func (n *jobDir) Unlink(_ context.Context, name string) syscall.Errno {
	if name == nameHold {
		return 0
	}
	return syscall.EISDIR
}

// Rename implements fusefs.NodeRenamer: a stage keeps its name.
func (n *jobDir) Rename(context.Context, string, fusefs.InodeEmbedder, string, uint32) syscall.Errno {
	return syscall.EPERM
}

// Readdir implements fusefs.NodeReaddirer.
func (n *jobDir) Readdir(ctx context.Context) (fusefs.DirStream, syscall.Errno) {
	names, err := n.job.Stages(ctx)
	if err != nil {
		return nil, n.tree.errno("list job", n.name, err)
	}
	entries := []fuse.DirEntry{
		{Name: nameBlob, Mode: syscall.S_IFDIR}, {Name: nameHold, Mode: syscall.S_IFREG}, {Name: nameScratch, Mode: syscall.S_IFDIR},
	}
	for _, name := range names {
		if name != nameBlob {
			entries = append(entries, fuse.DirEntry{Name: name, Mode: syscall.S_IFDIR})
		}
	}
	return fusefs.NewListDirStream(entries), 0
}

// A holdFile keeps its job in use as long as it is open, on whichever node.
type holdFile struct {
	fusefs.Inode
	job *ofJob
}

func (n *holdFile) attributes(a *fuse.Attr) {
	n.job.attributes(a)
	a.Mode, a.Nlink = syscall.S_IFREG|0600, 1
}

// Getattr implements fusefs.NodeGetattrer.
func (n *holdFile) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.attributes(&out.Attr)
	return 0
}

// Setattr implements fusefs.NodeSetattrer, for a shell that truncates what it opens.
func (n *holdFile) Setattr(_ context.Context, _ fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	n.attributes(&out.Attr)
	return keptRights(in, &out.Attr)
}

// Open implements fusefs.NodeOpener.
func (n *holdFile) Open(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return &holding{n.job.job.Use(true)}, fuse.FOPEN_DIRECT_IO, 0
}

type holding struct{ done func() }

// Read implements fusefs.FileReader.
func (h *holding) Read(context.Context, []byte, int64) (fuse.ReadResult, syscall.Errno) {
	return fuse.ReadResultData(nil), 0
}

// Release implements fusefs.FileReleaser.
func (h *holding) Release(context.Context) syscall.Errno {
	h.done()
	return 0
}

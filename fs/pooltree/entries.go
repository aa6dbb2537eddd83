package pooltree

import (
	"context"
	"path"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"rankfs/meta"
)

// The names that are in every job and stage.
const (
	nameScratch = "scratch"
	nameHold    = "hold"
	nameBlob    = meta.BlobDir
	nameSpec    = "spec"
	nameState   = "state"
	idx         = ".idx"
)

// Inode numbers. What is agreed has a number of the cluster and a kind in its upper
// bits; a file of a job has its number in the job's file system below the job's.
const (
	inoJob = uint64(1+iota) << 60
	inoStage
	inoText
	inoMap
	inoPart
	inoBlob
	jobBits = 36 // of an inode number of a job's file system
)

// An ofJob has the owner, the times and the errors that all entries of a job share.
type ofJob struct {
	tree *Tree
	name string
	job  Job
	dir  *fusefs.Inode // of the job
}

func setTimes(a *fuse.Attr, at time.Time) { a.SetTimes(&at, &at, &at) }

func (n *ofJob) attributes(a *fuse.Attr) {
	a.Mode, a.Nlink = syscall.S_IFDIR|0700, 2
	a.Uid, a.Gid = n.job.UID, n.job.GID
	setTimes(a, n.tree.config.Born)
}

// stable identifies a file of the job's file system.
func (n *ofJob) stable(st *syscall.Stat_t) fusefs.StableAttr {
	return fusefs.StableAttr{Mode: st.Mode & syscall.S_IFMT, Ino: n.job.Number()<<jobBits | st.Ino&(1<<jobBits-1)}
}

// Getattr implements fusefs.NodeGetattrer.
func (n *ofJob) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.attributes(&out.Attr)
	out.SetTimeout(attributesStay)
	return 0
}

// Setattr implements fusefs.NodeSetattrer. A job is its owner's alone, and stays so: what
// says that again, as mkdir -m 700, is fine.
func (n *ofJob) Setattr(_ context.Context, _ fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	n.attributes(&out.Attr)
	_, hasAtime := in.GetATime()
	_, hasMtime := in.GetMTime()
	if hasAtime || hasMtime {
		return syscall.EPERM
	}
	return keptRights(in, &out.Attr)
}

// keptRights refuses another mode or owner than a file has.
func keptRights(in *fuse.SetAttrIn, has *fuse.Attr) syscall.Errno {
	mode, hasMode := in.GetMode()
	uid, hasUID := in.GetUID()
	gid, hasGID := in.GetGID()
	if hasMode && mode&07777 != has.Mode&07777 || hasUID && uid != has.Uid || hasGID && gid != has.Gid {
		return syscall.EPERM
	}
	return 0
}

// Statfs implements fusefs.NodeStatfser.
func (n *ofJob) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	root, err := n.job.Files()
	if err == nil {
		err = statfs(root, out)
	}
	return n.tree.errno("measure job", n.name, err)
}

// immutable are the attributes of a file that never changes.
func (n *ofJob) immutable(a *fuse.Attr, size int64) {
	n.attributes(a)
	a.Mode, a.Nlink, a.Size, a.Blocks = syscall.S_IFREG|0400, 1, uint64(size), uint64(size+511)/512
}

// An ofStage has the paths and the errors that all entries of a stage share.
type ofStage struct {
	job   *ofJob
	name  string
	stage Stage
}

func (n *ofStage) attributes(a *fuse.Attr) { n.job.attributes(a) }

func (n *ofStage) path(name string) string { return path.Join(n.job.name, n.name, name) }

// errno is the number of an error for a program. Why, if it is about what the program
// asked, it finds in the file state.
func (n *ofStage) errno(doing, name string, err error) syscall.Errno {
	errno := n.job.tree.errno(doing, n.path(name), err)
	switch errno {
	case 0, syscall.ENOENT, syscall.EINTR, syscall.EAGAIN, syscall.EEXIST:
	default:
		n.stage.Refused(doing+" "+name, err)
	}
	return errno
}

// stable identifies what the stage has in this generation. The kernel shares what it has
// open, and has read, of one inode.
func (n *ofStage) stable(ino uint64) (a fusefs.StableAttr, generation uint64) {
	generation = n.stage.Generation()
	return fusefs.StableAttr{Mode: syscall.S_IFREG, Ino: ino, Gen: generation}, generation
}

// A current is a stage in one generation.
type current struct {
	stage      *ofStage
	generation uint64
}

// stale reports whether the stage was reset since.
func (c current) stale() bool { return c.stage.stage.Generation() != c.generation }

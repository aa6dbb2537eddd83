package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A Pool is the jobs of the shuffle pool, of all nodes. Its methods, and those of what
// they return, may be called concurrently.
type Pool interface {
	Jobs(ctx context.Context) ([]string, error)
	Job(ctx context.Context, name string) (PoolJob, error)
	MakeJob(ctx context.Context, name string, uid, gid uint32) (PoolJob, error)
	// RemoveJob forgets a job that has nothing in it.
	RemoveJob(ctx context.Context, name string) error
}

// A PoolJob is one directory of the pool.
type PoolJob interface {
	poolNamed // no other job had its number, or will
	Owner() (uid, gid uint32)
	// Files is where this node has the files of the job: the directory scratch, and
	// those of stages.
	Files() (*os.Root, error)
	PoolUses
	PoolStages
	Blobs() PoolBlobs
}

// PoolUses note the open files of a job.
type PoolUses interface {
	// Use says that something of the job is open, until done is called; with hold,
	// that it is the file hold.
	Use(hold bool) (done func())
	// Write says that something of the job is open to write, until done is called.
	Write() (done func())
}

// PoolStages are the stages of a job.
type PoolStages interface {
	Stages(ctx context.Context) ([]string, error)
	Stage(ctx context.Context, name string) (PoolStage, error)
	MakeStage(ctx context.Context, name string) (PoolStage, error)
	// RemoveStage forgets a stage that has no map.
	RemoveStage(ctx context.Context, name string) error
}

// PoolBlobs are the blobs of a job. Their names have the directories that they are in
// before them.
type PoolBlobs interface {
	// Find looks up the blob or directory of a name, wherever it was put.
	Find(ctx context.Context, name string) (PoolBlob, error)
	// List has the entries of a directory, at the top that of an empty name. Of what it returns
	// only names, numbers and which are directories is known.
	List(ctx context.Context, dir string) ([]PoolBlob, error)
	MakeDir(ctx context.Context, name string) (PoolBlob, error)
	// Remove forgets a blob, or a directory that has nothing in it.
	Remove(ctx context.Context, b PoolBlob) error
	Open(ctx context.Context, number uint64) (PoolFile, error)
	Puts() PoolPuts
}

// PoolPuts has files that this node writes, to put them later: it is below the directory blob of
// the job's files.
type PoolPuts interface {
	// Put makes a file the blob of a name, in place of one that has it, or with exclusive
	// only if none has; or all that is in a directory at once.
	Put(ctx context.Context, from, name string, exclusive bool) error
	// Write has a file, or what is in a directory, written until done is called, if it is
	// not put meanwhile.
	Write(name string) (done func(), err error)
	// Opened has a file open to write until done is called, whatever its name is by then. It
	// is called within Write of the name that it has.
	Opened(file *os.File) (done func(), err error)
	MayGrow(bytes int64) error
}

// A PoolBlob is a blob, or a directory of blobs.
type PoolBlob struct {
	Name   string
	Number uint64 // no other has it, or will
	Dir    bool
	PoolMap
}

// A PoolStage is one stage of a job.
type PoolStage interface {
	poolNamed
	// Generation counts the resets of the stage, and its other specs: of an older one
	// parts and maps are stale.
	Generation() uint64
	// Refused notes why something that a program asked of the stage was refused, for
	// the text of the file state.
	Refused(what string, err error)
	Texts() PoolTexts
	Attempts() PoolAttempts
	Maps() PoolMaps
	Parts() PoolParts
}

// PoolTexts have the bytes of the files spec and state of a stage.
type PoolTexts interface {
	Spec(ctx context.Context) (string, error) // empty until it was written
	Specify(ctx context.Context, text string) error
	State(ctx context.Context) ([]byte, error)
}

// PoolAttempts are the attempts of a stage that this node has.
type PoolAttempts interface {
	// Dir is their directory, below the job's files.
	Dir() (string, error)
	// Begin says that there are attempts: the stage keeps its spec from then on.
	Begin(ctx context.Context) error
	// Write has an attempt open to write until done is called, if it is not committed
	// meanwhile.
	Write(a meta.Attempt) (done func(), err error)
	// Remove removes one of the files of an attempt.
	Remove(a meta.Attempt, name string) error
	// MayGrow says why attempts must not have so many more bytes, if so.
	MayGrow(bytes int64) error
	// Reserve has one of the files of an attempt count as one of so many bytes, or says why
	// it cannot have those.
	Reserve(ctx context.Context, name string, bytes int64) (undo func(), err error)
	// Commit makes an attempt the map, if no other was before it; then it is discarded,
	// or with exclusive refused.
	Commit(ctx context.Context, a meta.Attempt, exclusive bool) error
}

// PoolMaps are the maps of a stage that are committed.
type PoolMaps interface {
	List(ctx context.Context) ([]uint64, error)
	Find(ctx context.Context, number uint64) (PoolMap, error)
	Remove(ctx context.Context, number uint64) error
	Open(ctx context.Context, number uint64) (PoolFile, error)
}

// PoolParts are the parts of a stage.
type PoolParts interface {
	// Size is zero until the stage is sealed.
	Size(ctx context.Context, p meta.Part) (int64, error)
	// Open waits until the stage is sealed, or without wait is EAGAIN.
	Open(ctx context.Context, p meta.Part, wait bool) (PoolFile, error)
}

// A PoolMap describes a map that is committed.
type PoolMap struct {
	Size       int64
	Attributes []Attribute
}

// A PoolFile is a file whose bytes never change, open until Release.
type PoolFile interface {
	io.ReaderAt
	Fd() int // below zero if there is none
	Release()
}

// A PoolTree serves the pool, by a connection to the kernel of its own: that of the
// datasets is read-only, and is fast because of that.
type PoolTree struct {
	pool      Pool
	log       *slog.Logger
	tree      *Tree // of datasets, which has the errnos
	names     poolNames
	server    *fuse.Server
	served    chan struct{}
	unmounted atomic.Bool
}

// NewPool returns a tree that is mounted nowhere yet, beside the tree of datasets.
func NewPool(p Pool, beside *Tree) *PoolTree {
	t := &PoolTree{pool: p, log: beside.config.Log, tree: beside}
	t.names.init(func(in *fusefs.Inode, name string) { in.NotifyEntry(name) }) // ENOENT: it did not remember it
	return t
}

// Forget has the kernel look up anew the names of jobs and stages that are no more, and
// returns once it does. It must not be called by what answers a request of the kernel.
func (t *PoolTree) Forget() { t.names.forget() }

// Mount attaches the tree to a directory, and serves it until Unmount.
func (t *PoolTree) Mount(dir string) error {
	files := &backing{refused: t.refused}
	raw := backed{fusefs.NewNodeFS(&poolRoot{tree: t}, &fusefs.Options{NullPermissions: true, ServerCallbacks: files}), files}
	options := &fuse.MountOptions{
		Name: Type, FsName: Type,
		MaxWrite:      maxRead,
		MaxBackground: 64,
		// Else the kernel asks for an extended attribute before every write.
		ExtraCapabilities:    fuse.CAP_HANDLE_KILLPRIV_V2,
		IgnoreSecurityLabels: true,
		Logger:               newLogger(t.log),
	}
	if on, _ := t.tree.Passthrough(); !on {
		options.DisabledCapabilities = fuse.CAP_PASSTHROUGH
	}
	device, err := mountDevice(dir, unix.S_IFDIR, unix.MS_NOSUID|unix.MS_NODEV, t.tree.config.AllowOther)
	if err != nil {
		return fmt.Errorf("mount %s: %w", dir, explain(err))
	}
	if t.server, err = fuse.NewServer(raw, fmt.Sprint("/dev/fd/", device), options); err != nil {
		return errors.Join(fmt.Errorf("mount %s: %w", dir, err), unix.Unmount(dir, unix.MNT_DETACH))
	}
	t.tree.poolRefused.Store(nil)
	t.served = make(chan struct{})
	go func() {
		defer close(t.served)
		t.server.Serve()
		t.names.tasks.Wait()
	}()
	return nil
}

// Unmount detaches the tree, at once: what programs have open stays open for them. It
// waits for requests under way where nothing is.
func (t *PoolTree) Unmount(dir string) error {
	if t.unmounted.Swap(true) {
		return nil
	}
	err := unix.Unmount(dir, 0)
	switch {
	case err == nil:
		<-t.served
	case errors.Is(err, unix.EBUSY):
		err = unix.Unmount(dir, unix.MNT_DETACH)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT): // by another process
		return nil
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return nil
}

// Gone is closed when the tree is no longer mounted.
func (t *PoolTree) Gone() <-chan struct{} { return t.served }

// refused notes that the kernel does not read and write the files of a file system by itself.
func (t *PoolTree) refused(file string, cause error) {
	if on, _ := t.tree.Passthrough(); !on {
		return // which is known
	}
	t.log.Warn("files of the shuffle pool are read and written through the daemon, as others of their file system", "file", file, "cause", cause)
	reason := fmt.Sprintf("%s: %v", file, cause)
	t.tree.poolRefused.Store(&reason)
}

// PoolRefused is a file of the shuffle pool that the kernel does not read and write by itself
// although it does others, and why; empty if there was none.
func (t *Tree) PoolRefused() string {
	if reason := t.poolRefused.Load(); reason != nil {
		return *reason
	}
	return ""
}

// errno is the number of an error for a program. The error is logged, if it is not an answer that
// programs ask for.
func (t *PoolTree) errno(doing, path string, err error) syscall.Errno {
	var plain syscall.Errno
	if !errors.As(err, &plain) {
		return syscall.Errno(t.tree.errno(doing, path, err))
	}
	switch plain {
	case unix.ENOENT, unix.EINTR, unix.EAGAIN, unix.EEXIST, unix.ENOTEMPTY:
		return plain
	}
	status := statusOf(err)
	if status == fuse.EIO { // of an error that has no other name
		status = fuse.Status(plain)
	}
	return syscall.Errno(t.tree.tell(doing, path, err, status))
}

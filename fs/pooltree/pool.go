package pooltree

import (
	"context"
	"io"
	"os"

	"rankfs/fs/xattr"
	"rankfs/meta"
)

// A Pool is the jobs of the shuffle pool, of all nodes. All that it leads to may be called
// concurrently.
type Pool struct {
	JobNames
	JobMaker
}

// JobNames are what the names of jobs stand for.
type JobNames interface {
	Jobs(ctx context.Context) ([]string, error)
	Job(ctx context.Context, name string) (Job, error)
}

// A JobMaker makes jobs and removes them.
type JobMaker interface {
	MakeJob(ctx context.Context, name string, uid, gid uint32) (Job, error)
	// RemoveJob forgets a job that has nothing in it.
	RemoveJob(ctx context.Context, name string) error
}

// A Job is one directory of the pool: what never changes of it, and what has its files.
type Job struct {
	Named           // no other job had its number, or will
	UID, GID uint32 // its owner
	// Files is where this node has the files of the job: the directory scratch, and
	// those of stages.
	Files func() (*os.Root, error)
	Uses
	StageNames
	StageMaker
	Blobs Blobs
}

// Named is a job or a stage, as the cluster knows it.
type Named interface {
	Number() uint64
	// Stands reports whether the cluster has it still, as far as this node knows.
	Stands() bool
}

// Uses note the open files of a job.
type Uses interface {
	// Use says that something of the job is open, until done is called; with hold,
	// that it is the file hold.
	Use(hold bool) (done func())
	// Write says that something of the job is open to write, until done is called.
	Write() (done func())
}

// StageNames are what the names of stages stand for, in a job.
type StageNames interface {
	Stages(ctx context.Context) ([]string, error)
	Stage(ctx context.Context, name string) (Stage, error)
}

// A StageMaker makes stages of a job and removes them.
type StageMaker interface {
	MakeStage(ctx context.Context, name string) (Stage, error)
	// RemoveStage forgets a stage that has no map.
	RemoveStage(ctx context.Context, name string) error
}

// Blobs are the blobs of a job. Their names have the directories that they are in
// before them.
type Blobs struct {
	BlobNames
	BlobDirs
	BlobFiles
	Puts
	// MayGrow says why what Puts has must not have so many more bytes, if so.
	MayGrow func(bytes int64) error
}

// BlobNames are what the names of blobs stand for.
type BlobNames interface {
	// Find looks up the blob or directory of a name, wherever it was put.
	Find(ctx context.Context, name string) (Blob, error)
	// List has the entries of a directory, at the top that of an empty name. Of what it returns
	// only names, numbers and which are directories is known.
	List(ctx context.Context, dir string) ([]Blob, error)
}

// BlobDirs are the directories of blobs, and what is removed from them.
type BlobDirs interface {
	MakeDir(ctx context.Context, name string) (Blob, error)
	// Remove forgets a blob, or a directory that has nothing in it.
	Remove(ctx context.Context, b Blob) error
}

// BlobFiles are the bytes of blobs.
type BlobFiles interface {
	Open(ctx context.Context, number uint64) (File, error)
	// Put makes a file that Puts has the blob of a name, in place of one that has it, or
	// with exclusive only if none has; or all that is in a directory at once.
	Put(ctx context.Context, from, name string, exclusive bool) error
}

// Puts has files that this node writes, to put them later: it is below the directory blob of
// the job's files.
type Puts interface {
	// Write has a file, or what is in a directory, written until done is called, if it is
	// not put meanwhile.
	Write(name string) (done func(), err error)
	// Opened has a file open to write until done is called, whatever its name is by then. It
	// is called within Write of the name that it has.
	Opened(file *os.File) (done func(), err error)
}

// A Blob is a blob, or a directory of blobs.
type Blob struct {
	Name   string
	Number uint64 // no other has it, or will
	Dir    bool
	Map
}

// A Stage is one stage of a job: what has its files.
type Stage struct {
	Named
	// Generation counts the resets of the stage, and its other specs: of an older one
	// parts and maps are stale.
	Generation func() uint64
	// Refused notes why something that a program asked of the stage was refused, for
	// the text of the file state.
	Refused func(what string, err error)
	// State has the bytes of the file state.
	State func(ctx context.Context) ([]byte, error)
	SpecText
	Attempts Attempts
	Maps     Maps
	Parts    Parts
}

// SpecText is the text of the file spec of a stage.
type SpecText interface {
	Spec(ctx context.Context) (string, error) // empty until it was written
	Specify(ctx context.Context, text string) error
}

// Attempts are the attempts of a stage that this node has.
type Attempts struct {
	// Dir is their directory, below the job's files.
	Dir func() (string, error)
	AttemptWrites
	AttemptGrowth
	AttemptEnds
}

// AttemptWrites note that attempts are written.
type AttemptWrites interface {
	// Begin says that there are attempts: the stage keeps its spec from then on.
	Begin(ctx context.Context) error
	// Write has an attempt open to write until done is called, if it is not committed
	// meanwhile.
	Write(a meta.Attempt) (done func(), err error)
}

// AttemptGrowth says how many bytes attempts may have.
type AttemptGrowth interface {
	// MayGrow says why attempts must not have so many more bytes, if so.
	MayGrow(bytes int64) error
	// Reserve has one of the files of an attempt count as one of so many bytes, or says why
	// it cannot have those.
	Reserve(ctx context.Context, name string, bytes int64) (undo func(), err error)
}

// AttemptEnds take the names of attempts from them.
type AttemptEnds interface {
	// Commit makes an attempt the map, if no other was before it; then it is discarded,
	// or with exclusive refused.
	Commit(ctx context.Context, a meta.Attempt, exclusive bool) error
	// Remove removes one of the files of an attempt.
	Remove(a meta.Attempt, name string) error
}

// Maps are the maps of a stage that are committed.
type Maps struct {
	MapNumbers
	MapFiles
}

// MapNumbers are which maps are committed, and of what attempts.
type MapNumbers interface {
	List(ctx context.Context) ([]uint64, error)
	Find(ctx context.Context, number uint64) (Map, error)
}

// MapFiles are the bytes of maps.
type MapFiles interface {
	Open(ctx context.Context, number uint64) (File, error)
	Remove(ctx context.Context, number uint64) error
}

// Parts are the parts of a stage.
type Parts interface {
	// Size is zero until the stage is sealed.
	Size(ctx context.Context, p meta.Part) (int64, error)
	// Open has a thread, zero if it is not known, wait until the stage is sealed, or without
	// wait is EAGAIN.
	Open(ctx context.Context, thread int32, p meta.Part, wait bool) (File, error)
}

// A Map describes a map that is committed.
type Map struct {
	Size       int64
	Attributes xattr.List
}

// A File is a file whose bytes never change, open until Release.
type File interface {
	io.ReaderAt
	Fd() int // below zero if there is none
	Release()
}

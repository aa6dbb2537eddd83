package fs

import (
	"context"

	"rankfs/fs/xattr"
)

// A Catalog knows the datasets. Its methods may be called concurrently.
type Catalog interface {
	// Names lists the registered datasets in order.
	Names() []string
	// View resolves the name of a directory below /datasets, NAME or
	// NAME@options. Any user's lookup calls it, so it must be cheap.
	View(name string) (View, error)
}

// A View is one directory below /datasets: what never changes of it, and what has its
// files, which may be called concurrently. Its batches are all steps of all ranks.
type View struct {
	Dataset      string
	Ranks, Steps uint64
	// Settled reports whether the rest of the view never changes either. Until
	// then the kernel must not cache it. The first Open settles a view.
	Settled func() bool
	Batches
	RecordTables
	// Describe is the content of dataset.json.
	Describe func() []byte
	Tables
	Attributed
	Unlisted
	// Queue opens the queue of a rank that takes batches dynamically, line by line, for a
	// user.
	Queue func(rank uint64, uid uint32) Queue
}

// Batches are the files that the ranks read.
type Batches interface {
	// Size may take a while the first time, where records differ in length.
	Size(ctx context.Context, rank, step uint64) (int64, error)
	// Open returns the batch's slab, complete, to a thread; zero: which one is not known, as it
	// may be in another process id namespace. Changed sources are ErrStale.
	Open(ctx context.Context, thread int32, rank, step uint64) (Slab, error)
}

// RecordTables are the .idx files of batches.
type RecordTables interface {
	// Records is how many the batch has; its table has one number more.
	Records(rank, step uint64) uint64
	// Offsets is the content of the table. It settles the view, and may take as long as the
	// batch's Size.
	Offsets(ctx context.Context, rank, step uint64) (Offsets, error)
}

// Tables are the files of a view's directory that have those names. Their size stays what it
// was, their hosts may change.
type Tables interface {
	Locality() Table
	Chunks() Table
}

// Attributed has extended attributes.
type Attributed interface {
	// Totals are those of the directory, Attributes those of a batch.
	Totals() xattr.List
	Attributes(ctx context.Context, rank, step uint64) (xattr.List, error)
}

// Unlisted are extended attributes that only a program gets that names them.
type Unlisted interface {
	// HostsCalled are the hosts in the table of chunks that are the one of this name,
	// whatever it is called there: there is an attribute for each name.
	HostsCalled(name string) []string
	// Checksum is the sum of a batch's bytes, and as long for each. It takes what the batch's
	// Open takes.
	Checksum(ctx context.Context, rank, step uint64) (string, error)
}

// A Queue is one open queue file. But for Ready it is used by one goroutine at a
// time.
type Queue interface {
	// Next reports the line before it as done and returns another, with its
	// newline, or nothing if all work is done. If the queue has no line for now,
	// Next waits, maybe long, or without wait returns EAGAIN; after an error the
	// next call returns the same line. Before the end it returns ErrSetAside
	// once, if some of the work was not done.
	Next(ctx context.Context, wait bool) ([]byte, error)
	// Ready reports whether Next would return at once, with a line or an error. It
	// takes no line and finishes none. With wait it may block some seconds until
	// Next would. It may be called while Next runs.
	Ready(ctx context.Context, wait bool) bool
	// Close gives back the lines that were taken and not finished. It does not wait.
	Close()
}

// Offsets are the numbers of one .idx file, of which any part can be made without
// the rest. They may be used concurrently.
type Offsets interface {
	// Append appends n of the numbers from one on, 8 bytes each, as far as there
	// are so many.
	Append(ctx context.Context, dst []byte, first, n uint64) ([]byte, error)
}

// A Slab is a complete batch: a file that holds exactly its bytes.
type Slab interface {
	Backing() int32 // as Register returned it
	Fd() int
	Release()
}

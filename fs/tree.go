package fs

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"rankfs/fs/errnos"
)

// A File is a small text below /.rankfs, made anew for each open.
type File struct {
	Name    string
	Content func() []byte
}

// Config says how the tree looks.
type Config struct {
	Catalog  Catalog
	Info     []File
	Pool     bool // there is a directory for the shuffle pool
	UID, GID uint32
	Umask    uint32 // taken away from r-xr-xr-x
	Log      *slog.Logger
	// AllowOther lets users other than the daemon's use the mount, as far
	// as modes permit.
	AllowOther bool
	// NoPassthrough serves batches by reads through the daemon, as on a
	// kernel that has nothing better.
	NoPassthrough bool
}

// A Tree serves one mount. The kernel's requests come concurrently. What is set by New, and in a
// connection before it is mounted, does not change; views, handles and notices each say what
// their lock guards.
type Tree struct {
	fuse.RawFileSystem // answers ENOSYS to every call without a method here
	connection         // by which these come
	config             Config
	errnos             *errnos.Errnos // of what fails
	born               time.Time
	views              views
	handles            handles
	count              struct{ lookups, batchReads atomic.Uint64 }
}

// New returns a tree that is mounted nowhere yet.
func New(c Config) *Tree {
	t := &Tree{RawFileSystem: fuse.NewDefaultRawFileSystem(), config: c, errnos: errnos.New(c.Log), born: time.Now()}
	t.connection.init(c.Log)
	t.views.init()
	t.handles.init()
	return t
}

// Errnos are those of what fails, for the tree of the pool, too: there an error is logged, and
// counted, as one of the same mount.
func (t *Tree) Errnos() *errnos.Errnos { return t.errnos }

// Born is when the tree was made: the time of all in it that never changes.
func (t *Tree) Born() time.Time { return t.born }

// Stats is a snapshot of a tree.
type Stats struct {
	Lookups    uint64
	BatchReads uint64 // READ requests for batches: zero where passthrough is on
	Errors     uint64 // errnos given to ranks, but for names that do not exist
	Views      int    // names below /datasets that are known to the kernel
}

// Stats returns what the tree has done and holds.
func (t *Tree) Stats() Stats {
	return Stats{
		Lookups:    t.count.lookups.Load(),
		BatchReads: t.count.batchReads.Load(),
		Errors:     t.errnos.Count(),
		Views:      t.views.len(),
	}
}

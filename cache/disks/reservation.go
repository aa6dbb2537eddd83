package disks

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/diskdir"
	"rankfs/meta/slowdisk"
)

// A Reservation is room for files that are not slabs, in one of a tier's directories.
//
//   - Its bytes are kept from slabs to come, and from Charge to Release they are used.
//   - Those of files to come are pending on the file system until they have blocks.
//
// While its lock is held only the budget's is taken.
type Reservation struct {
	dir   *directory
	place *place
	bytes int64

	mu struct {
		sync.Mutex
		pending int64
		charged bool
		closed  bool
	}
}

// Dir is the directory in which the room is, and its budget.
func (r *Reservation) Dir() Dir { return Dir{r.dir.path, r.dir.budget.Max} }

// Folder is the folder of a name in the directory.
func (r *Reservation) Folder(name string) *Folder { return &Folder{r.dir.health, r.place, name} }

// Reserve keeps bytes of a directory's budget from slabs to come: of the directory
// of that path, for files that are there already, or of any if it is empty, for
// files to come. The error wraps meta.ErrNoSpace if they are more than other files
// have left of it, or the directory is not used now: a file made there all the
// same might be written to what is below a mount point.
func (t *Tier) Reserve(bytes int64, in string) (*Reservation, error) {
	var refusals []error
	for _, d := range t.byOthers() {
		if in != "" && d.path != in {
			continue
		}
		r, err := d.reserve(bytes, in == "")
		if err == nil {
			return r, nil
		}
		refusals = append(refusals, err)
	}
	if refusals == nil {
		return nil, fmt.Errorf("%w: %s is no nvme directory", meta.ErrNoSpace, in)
	}
	return nil, errors.Join(refusals...)
}

// Elsewhere reserves as much in another directory, for files to come, if charge can
// charge it there. If not it returns nil.
func (t *Tier) Elsewhere(than *Reservation, charge func(*Reservation) bool) *Reservation {
	for _, d := range t.byOthers() {
		if d == than.dir {
			continue
		}
		if r, err := d.reserve(than.bytes, true); err == nil {
			if charge(r) {
				return r
			}
			r.Release()
		}
	}
	return nil
}

// byOthers are the directories in the order in which files that are not slabs go
// to them: those that are written to first, and of these the one with the most
// budget beside such files, as slabs make way.
func (t *Tier) byOthers() []*directory {
	left := make(map[*directory]int64)
	for _, d := range t.dirs {
		left[d] = d.budget.Beside()
		if _, err := d.reader.readable(); err != nil || d.health.Suspended() != nil {
			left[d] -= math.MaxInt64
		}
	}
	dirs := slices.Clone(t.dirs)
	slices.SortStableFunc(dirs, func(a, b *directory) int { return cmp.Compare(left[b], left[a]) })
	return dirs
}

// reserve keeps bytes of the budget from slabs; for files to come, of the file system too.
func (d *directory) reserve(bytes int64, toCome bool) (*Reservation, error) {
	p, err := d.reader.readable()
	if err != nil {
		return nil, fmt.Errorf("%w: nvme directory %s: %w", meta.ErrNoSpace, d.path, err)
	}
	if !d.budget.Reserve(bytes) {
		return nil, fmt.Errorf("%w: %d bytes, nvme budget of %d in %s, %d of it for other files; give --nvme a larger SIZE, or remove datasets whose copies are there",
			meta.ErrNoSpace, bytes, d.budget.Max, d.path, d.budget.Max-d.budget.Beside())
	}
	r := &Reservation{dir: d, place: p, bytes: bytes}
	if toCome {
		p.pending.Add(bytes)
		r.mu.pending = bytes
		if err := d.evictor.fits(p); err != nil {
			r.Release()
			return nil, fmt.Errorf("%w: nvme directory %s: its disk has no room for %d bytes: %w", meta.ErrNoSpace, d.path, bytes, err)
		}
	}
	return r, nil
}

// Charge counts the bytes as used, if evicting slabs that no rank has open makes
// enough room. The caller may repeat it until it reports success.
func (r *Reservation) Charge() bool {
	for !r.charge() {
		if !r.dir.evictor.shrink(nil) {
			return false
		}
	}
	return true
}

func (r *Reservation) charge() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.charged = r.mu.charged || r.mu.closed || r.dir.budget.Charge(r.bytes)
	return r.mu.charged
}

// Make makes a durable file in a folder of the directory, of that size and with all of
// its blocks, or opens one that an earlier attempt left there.
func (r *Reservation) Make(folder, name string, size int64) (*File, error) {
	defer r.made(r.place.blocks(size)) // from here on the file system counts them
	return ask(r.dir.health, func(w *slowdisk.Work) (*File, error) {
		f := &File{r.dir.health, &diskdir.File{Dir: r.place.Root, Unfinished: filepath.Join(folder, name), Durable: true}}
		err := w.Do(func() error { return r.place.Root.MkdirAll(folder, 0700) })
		if err == nil {
			err = f.file.Create(w, 0, 0600, size)
		}
		if errors.Is(err, unix.EOPNOTSUPP) {
			err = nil // the room is found out about by writing
		}
		if err == nil {
			err = w.Do(func() error { return f.file.Bytes.Truncate(size) })
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		return f, nil
	}, func(f *File) { f.Close() })
}

// made counts bytes as pending no more.
func (r *Reservation) made(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	bytes = min(bytes, r.mu.pending)
	r.mu.pending -= bytes
	r.place.pending.Add(-bytes)
}

// Release gives the bytes back. It may be called more than once.
func (r *Reservation) Release() {
	r.made(math.MaxInt64)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.closed {
		r.dir.budget.Release(r.bytes, r.mu.charged)
	}
	r.mu.closed = true
}

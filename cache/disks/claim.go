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
)

// A Claim is room for files that are not slabs, in one of a tier's directories.
//
//   - Its bytes are kept from slabs to come, and from Settle to Release they are used.
//   - Those of files to come are pending on the file system until they have blocks.
//
// While its lock is held only the budget's is taken.
type Claim struct {
	dir   *directory
	place *place
	bytes int64

	mu struct {
		sync.Mutex
		pending int64
		settled bool
		closed  bool
	}
}

// Dir is the directory in which the room is, and its budget.
func (c *Claim) Dir() Dir { return Dir{c.dir.path, c.dir.budget.most} }

// Folder is that of a name in the directory.
func (c *Claim) Folder(name string) *Folder { return &Folder{c.dir.health, c.place, name} }

// Claim keeps bytes of a directory's budget from slabs to come: of the directory
// of that path, for files that are there already, or of any if it is empty, for
// files to come. The error wraps meta.ErrNoSpace if they are more than other files
// have left of it, or the directory is not used now: a file made there all the
// same might be written to what is below a mount point.
func (t *Tier) Claim(bytes int64, in string) (*Claim, error) {
	var refusals []error
	for _, d := range t.byOthers() {
		if in != "" && d.path != in {
			continue
		}
		c, err := d.claim(bytes, in == "")
		if err == nil {
			return c, nil
		}
		refusals = append(refusals, err)
	}
	if refusals == nil {
		return nil, fmt.Errorf("%w: %s is no nvme directory", meta.ErrNoSpace, in)
	}
	return nil, errors.Join(refusals...)
}

// Elsewhere claims as much in another directory, for files to come, if settle settles
// it there. If not it returns nil.
func (t *Tier) Elsewhere(than *Claim, settle func(*Claim) bool) *Claim {
	for _, d := range t.byOthers() {
		if d == than.dir {
			continue
		}
		if c, err := d.claim(than.bytes, true); err == nil {
			if settle(c) {
				return c
			}
			c.Release()
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
		left[d] = d.budget.forOthers()
		if _, err := d.reader.readable(); err != nil || d.health.suspended() != nil {
			left[d] -= math.MaxInt64
		}
	}
	dirs := slices.Clone(t.dirs)
	slices.SortStableFunc(dirs, func(a, b *directory) int { return cmp.Compare(left[b], left[a]) })
	return dirs
}

// claim keeps bytes of the budget from slabs; for files to come, of the file system too.
func (d *directory) claim(bytes int64, toCome bool) (*Claim, error) {
	p, err := d.reader.readable()
	if err != nil {
		return nil, fmt.Errorf("%w: nvme directory %s: %w", meta.ErrNoSpace, d.path, err)
	}
	if !d.budget.claim(bytes) {
		return nil, fmt.Errorf("%w: %d bytes, nvme budget of %d in %s, %d of it for other files; give --nvme a larger SIZE, or remove datasets whose copies are there",
			meta.ErrNoSpace, bytes, d.budget.most, d.path, d.budget.most-d.budget.forOthers())
	}
	c := &Claim{dir: d, place: p, bytes: bytes}
	if toCome {
		p.pending.Add(bytes)
		c.mu.pending = bytes
		if err := d.evictor.fits(p); err != nil {
			c.Release()
			return nil, fmt.Errorf("%w: nvme directory %s: its disk has no room for %d bytes: %w", meta.ErrNoSpace, d.path, bytes, err)
		}
	}
	return c, nil
}

// Settle counts the bytes as used, if evicting slabs that no rank has open makes
// enough room. The caller may repeat it until it reports success.
func (c *Claim) Settle() bool {
	for !c.settle() {
		if !c.dir.evictor.shrink(nil) {
			return false
		}
	}
	return true
}

func (c *Claim) settle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.settled = c.mu.settled || c.mu.closed || c.dir.budget.settle(c.bytes)
	return c.mu.settled
}

// Make makes a durable file in a folder of the directory, of that size and with all of
// its blocks, or opens one that an earlier attempt left there.
func (c *Claim) Make(folder, name string, size int64) (*File, error) {
	defer c.made(c.place.blocks(size)) // from here on the file system counts them
	return ask(c.dir.health, func(*operation) (*File, error) {
		if err := c.place.root.MkdirAll(folder, 0700); err != nil {
			return nil, err
		}
		f, err := c.place.create(c.dir.health, filepath.Join(folder, name), 0, size, true)
		if errors.Is(err, unix.EOPNOTSUPP) {
			err = nil // the room is found out about by writing
		}
		if err == nil {
			err = f.file.Truncate(size)
		}
		if err != nil && f != nil {
			f.Close()
		}
		return f, err
	}, func(f *File) { f.Close() })
}

// made counts bytes as pending no more.
func (c *Claim) made(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes = min(bytes, c.mu.pending)
	c.mu.pending -= bytes
	c.place.pending.Add(-bytes)
}

// Release gives the bytes back. It may be called more than once.
func (c *Claim) Release() {
	c.made(math.MaxInt64)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mu.closed {
		c.dir.budget.release(c.bytes, c.mu.settled)
	}
	c.mu.closed = true
}

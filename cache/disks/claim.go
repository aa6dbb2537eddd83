package disks

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"rankfs/meta"
)

// A Claim is room for files that are not slabs, in one of a tier's directories.
type Claim struct {
	dir    *directory
	bytes  int64
	holds  bool
	closed bool
}

// Dir is the directory in which the room is, and its budget.
func (c *Claim) Dir() Dir { return Dir{c.dir.path, c.dir.budget} }

// Readable are the directories that can be read now.
func (t *Tier) Readable() (paths []string) {
	for _, d := range t.dirs {
		d.mu.Lock()
		if !d.unreadable() {
			paths = append(paths, d.path)
		}
		d.mu.Unlock()
	}
	return paths
}

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
		c, err := d.claim(bytes)
		if err == nil && in == "" {
			if err = d.fits(bytes); err != nil {
				c.Release()
			}
		}
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

// byOthers are the directories in the order in which files that are not slabs go
// to them: those that are written to first, and of these the one with the most
// budget beside such files, as slabs make way.
func (t *Tier) byOthers() []*directory {
	left := make(map[*directory]int64)
	for _, d := range t.dirs {
		d.mu.Lock()
		left[d] = d.budget - d.mu.others - d.mu.claims
		if d.unreadable() || d.suspended() != nil {
			left[d] -= math.MaxInt64
		}
		d.mu.Unlock()
	}
	dirs := slices.Clone(t.dirs)
	slices.SortStableFunc(dirs, func(a, b *directory) int { return cmp.Compare(left[b], left[a]) })
	return dirs
}

func (d *directory) claim(bytes int64) (*Claim, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unreadable() {
		return nil, fmt.Errorf("%w: nvme directory %s: %w", meta.ErrNoSpace, d.path, cmp.Or(d.mu.failure.cause, errUnreadable))
	}
	if taken := d.mu.others + d.mu.claims; bytes > d.budget-taken {
		return nil, fmt.Errorf("%w: %d bytes, nvme budget of %d in %s, %d of it for other files; give --nvme a larger SIZE, or remove datasets whose copies are there",
			meta.ErrNoSpace, bytes, d.budget, d.path, taken)
	}
	d.mu.claims += bytes
	return &Claim{dir: d, bytes: bytes}, nil
}

// fits gives up slabs until the file system has its floor free beside bytes to
// come.
func (d *directory) fits(bytes int64) error {
	d.mu.Lock()
	p := d.mu.place
	d.mu.Unlock()
	if p == nil {
		return fmt.Errorf("nvme directory %s: %w: %w", d.path, errUnreadable, ErrNoRoom)
	}
	p.pending.Add(bytes)
	defer p.pending.Add(-bytes)
	short, err := d.short(p)
	if err == nil && short > d.slabBytes() { // none is given up for nothing
		err = errFull
	}
	if err == nil {
		err = d.clear(p, nil)
	}
	if err != nil {
		return fmt.Errorf("%w: nvme directory %s: its disk has no room for %d bytes: %w", meta.ErrNoSpace, d.path, bytes, err)
	}
	return nil
}

// Settle counts the bytes as used, if evicting slabs that no rank has open makes
// enough room. The caller may repeat it until it reports success.
func (c *Claim) Settle() bool {
	for !c.settle() {
		if !c.dir.shrink(nil) {
			return false
		}
	}
	return true
}

func (c *Claim) settle() bool {
	d := c.dir
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.holds || c.closed {
		return true
	}
	if d.mu.used+c.bytes > d.budget {
		return false
	}
	d.mu.claims -= c.bytes
	d.mu.others += c.bytes
	d.mu.used += c.bytes
	c.holds = true
	return true
}

// Release gives the bytes back. It may be called more than once.
func (c *Claim) Release() {
	d := c.dir
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case c.closed:
	case c.holds:
		d.mu.others -= c.bytes
		d.mu.used -= c.bytes
	default:
		d.mu.claims -= c.bytes
	}
	c.closed = true
}

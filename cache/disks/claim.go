package disks

import (
	"cmp"
	"fmt"

	"rankfs/meta"
)

// A Claim is room for files that are not slabs, in a tier's first directory.
type Claim struct {
	dir    *directory
	bytes  int64
	holds  bool
	closed bool
}

// Claim keeps bytes of the first directory's budget from slabs to come. The
// error wraps meta.ErrNoSpace if they are more than others have left of it, or
// the directory is not used now: who writes there all the same might write to
// what is below a mount point.
func (t *Tier) Claim(bytes int64) (*Claim, error) {
	d := t.dirs[0]
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.blind() {
		return nil, fmt.Errorf("%w: nvme directory %s: %w", meta.ErrNoSpace, d.path, cmp.Or(d.mu.ill.cause, errBlind))
	}
	if taken := d.mu.others + d.mu.claims; bytes > d.budget-taken {
		return nil, fmt.Errorf("%w: %d bytes, nvme budget of %d, %d of it for other files; give --nvme a larger SIZE, or remove datasets whose copies are there",
			meta.ErrNoSpace, bytes, d.budget, taken)
	}
	d.mu.claims += bytes
	return &Claim{dir: d, bytes: bytes}, nil
}

// Settle counts the bytes as used, if slabs that nobody has open can make way
// for them. It may be called until it reports that they have.
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

package local

import (
	"slices"
	"sync"
)

// keptOpen is how many files stay open between reads. A batch touches a file once;
// only a few files at a time are read piece by piece.
const keptOpen = 32

// descriptors keeps the files used last open. Besides those that it keeps,
// there is at most one for each reader. The lock guards the list, and uses and kept of
// each; files are opened and closed without it.
type descriptors struct {
	open func(id uint32) (*version, error)

	mu struct {
		sync.Mutex
		kept []*descriptor // the one used last comes last
	}
}

// A descriptor is closed when it is neither kept nor used.
type descriptor struct {
	*version
	id   uint32
	uses int
	kept bool
}

// get returns file id, open, until put.
func (c *descriptors) get(id uint32) (*descriptor, error) {
	if d := c.find(id); d != nil {
		return d, nil
	}
	v, err := c.open(id) // two readers may each open one
	if err != nil {
		return nil, err
	}
	d := &descriptor{version: v, id: id, uses: 1}
	c.keep(d)
	return d, nil
}

func (c *descriptors) find(id uint32) *descriptor {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.mu.kept, func(d *descriptor) bool { return d.id == id })
	if i < 0 {
		return nil
	}
	d := c.mu.kept[i]
	c.mu.kept = append(slices.Delete(c.mu.kept, i, i+1), d)
	d.uses++
	return d
}

// keep adds d and forgets the one that was used the longest time ago.
func (c *descriptors) keep(d *descriptor) {
	c.mu.Lock()
	var old *descriptor
	if len(c.mu.kept) == keptOpen {
		old = c.mu.kept[0]
		c.mu.kept = slices.Delete(c.mu.kept, 0, 1)
		old.kept = false
		if old.uses > 0 {
			old = nil // its last reader closes it
		}
	}
	d.kept = true
	c.mu.kept = append(c.mu.kept, d)
	c.mu.Unlock()
	if old != nil {
		old.file.Close()
	}
}

func (c *descriptors) put(d *descriptor) {
	c.mu.Lock()
	d.uses--
	last := d.uses == 0 && !d.kept
	c.mu.Unlock()
	if last {
		d.file.Close()
	}
}

// close closes all. None is in use.
func (c *descriptors) close() {
	for _, d := range c.mu.kept {
		d.file.Close()
	}
	c.mu.kept = nil
}

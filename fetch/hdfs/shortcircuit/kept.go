package shortcircuit

import (
	"errors"
	"syscall"
	"time"
)

// kept returns the open files of a block, if there are any, for one more use.
func (c *Client) kept(k key) *File {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.wanted = time.Now()
	f := c.mu.files[k]
	if f != nil {
		c.use(f)
	}
	return f
}

// use counts one more use. mu is held.
func (c *Client) use(f *File) {
	if f.uses == 0 {
		c.mu.idle.Remove(f.idle)
	}
	f.uses++
}

// keep lets other readers find a file that was just passed, with its first use.
// If two asked at the same time, the first file is the one for all.
func (c *Client) keep(f *File) *File {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.uses = 1
	switch first := c.mu.files[f.key]; {
	case c.mu.closed || c.outdated(f):
		f.forgotten = true
	case first == nil:
		c.mu.files[f.key] = f
	default:
		c.use(first)
		f.forgotten = true
		c.release(f)
		return first
	}
	return f
}

// good reports whether files may serve one more reader.
func (c *Client) good(f *File) bool {
	return f.unchanged() == nil && !f.origin.moved() && time.Since(f.asked) < c.config.Age
}

// end ends a use of a file.
func (c *Client) end(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(f)
}

// fail keeps a file, which could not be read, from further readers. They get the
// block over TCP for a while, unless it was changed, or the fault is of their memory.
func (c *Client) fail(f *File, cause error) {
	c.forget(f)
	if !errors.Is(cause, ErrChanged) && !errors.Is(cause, syscall.EFAULT) {
		c.refuse(f.key, f.origin, cause)
	}
}

// forget keeps a file from further readers; it is closed after its last use.
func (c *Client) forget(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(f)
}

// drop forgets a file. mu is held.
func (c *Client) drop(f *File) {
	if f.forgotten {
		return
	}
	f.forgotten = true
	delete(c.mu.files, f.key)
	if f.uses == 0 {
		c.mu.idle.Remove(f.idle)
		f.close()
	}
}

// release ends a use. mu is held.
func (c *Client) release(f *File) {
	if f.uses--; f.uses > 0 {
		return
	}
	if f.forgotten {
		f.close()
		return
	}
	f.idle = c.mu.idle.PushBack(f)
	if c.mu.idle.Len() > c.config.Keep {
		c.drop(c.mu.idle.Front().Value.(*File))
	}
	c.arm()
}

// Idle files are checked every sweepEvery, so that the disk space of a deleted block
// is free soon after.
const sweepEvery = 2 * time.Second

// arm has the sweep run while there are idle files, however often files are released
// meanwhile. mu is held.
func (c *Client) arm() {
	if c.mu.closed || c.mu.armed || c.mu.idle.Len() == 0 {
		return
	}
	c.mu.armed = true
	c.mu.sweep = time.AfterFunc(sweepEvery, c.sweep)
}

// sweep forgets idle files that are no longer good.
func (c *Client) sweep() {
	for _, f := range c.idle() {
		c.check(f)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.armed = false
	c.arm()
}

// idle returns the idle files. They may be closed at any time.
func (c *Client) idle() (all []*File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.mu.idle.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*File))
	}
	return all
}

// check looks at a file, with a use of it, so that nothing closes it meanwhile: a close may
// hang.
func (c *Client) check(f *File) {
	if !c.still(f) {
		return
	}
	defer f.Release()
	if !c.good(f) {
		c.forget(f)
	}
}

// still begins a use of a file, if it is not forgotten.
func (c *Client) still(f *File) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !f.forgotten {
		c.use(f)
	}
	return !f.forgotten
}

func (c *Client) forgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.closed = true
	if c.mu.sweep != nil {
		c.mu.sweep.Stop()
	}
	for _, f := range c.mu.files {
		c.drop(f)
	}
}

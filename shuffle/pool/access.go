package pool

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"rankfs/meta"
)

// leaseTime is how long a commit waits for the last writer of its file to be gone: the
// kernel may yet be at work on a close.
const leaseTime = time.Second

// The claims are what names of a job's files are in use for.
type claims struct {
	mu struct {
		sync.Mutex
		access   map[string]*access // of files and directories that are written, or committed
		expected map[string]int     // copies that come or have come, and may not be agreed on yet
	}
}

func (c *claims) init() {
	c.mu.access, c.mu.expected = make(map[string]*access), make(map[string]int)
}

// An access is what a file or directory that may be committed is used for: programs write
// it, or it is being committed, never both. The lease that a commit takes does not tell
// alone, as of an open that was answered a moment ago the kernel has no descriptor yet.
type access struct {
	writers int // below zero: it is being committed
	unused  chan struct{}
}

// write has a file written until done is called. One that is being committed, or that may
// have been, is not written any more.
func (f *files) write(name string) (done func(), err error) {
	if done, err = f.use(name); err != nil {
		return nil, err
	}
	if info, err := f.root.Lstat(name); err == nil && info.Mode().IsRegular() && links(info) > 1 {
		done()
		return nil, errCommitting(name)
	}
	return done, nil
}

// use has a file used, to be written or changed otherwise, until done is called. One that is
// being committed is not.
func (c *claims) use(name string) (done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for in := name; in != "."; in = path.Dir(in) {
		if a := c.mu.access[in]; a != nil && a.writers < 0 {
			return nil, errCommitting(name)
		}
	}
	a := c.mu.access[name]
	if a == nil {
		a = &access{unused: make(chan struct{})}
		c.mu.access[name] = a
	}
	a.writers++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if a.writers--; a.writers == 0 {
			c.unused(name)
		}
	}, nil
}

func errCommitting(name string) error {
	return fmt.Errorf("%s %w: it is being committed; rename it once more to learn what became of it", path.Base(name), meta.ErrBusy)
}

// commit waits until nobody uses a file, or what is in a directory, and keeps it so until
// done is called.
func (c *claims) commit(ctx context.Context, name string) (done func(), err error) {
	late := time.NewTimer(leaseTime)
	defer late.Stop()
	for {
		unused := c.seize(name)
		if unused == nil {
			return func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.unused(name)
			}, nil
		}
		select {
		case <-unused:
		case <-late.C:
			return nil, errWritten
		case <-ctx.Done():
			return nil, cause(ctx)
		}
	}
}

var errWritten = meta.Worded(meta.ErrBusy, "it is open for writing still, or mapped so; close it first")

// seize takes a file or directory for a commit; or, if it is used, returns what is closed
// when some of that use is over.
func (c *claims) seize(name string) (unused <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for used, a := range c.mu.access {
		if used == name || strings.HasPrefix(used, name+"/") {
			return a.unused
		}
	}
	c.mu.access[name] = &access{writers: -1, unused: make(chan struct{})}
	return nil
}

func (c *claims) unused(name string) {
	close(c.mu.access[name].unused)
	delete(c.mu.access, name)
}

func links(info os.FileInfo) uint64 { return uint64(info.Sys().(*syscall.Stat_t).Nlink) }
func inode(info os.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

// commitTime is how long after its last copy was sent a commit is agreed on, or never.
const commitTime = 2 * agreeTime

// expect keeps a copy from being given up, until commitTime after the returned function
// was called.
func (c *claims) expect(name string) (done func()) {
	add := func(n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.mu.expected[name] += n; c.mu.expected[name] <= 0 { // or it was agreed on meanwhile
			delete(c.mu.expected, name)
		}
	}
	add(1)
	return func() { time.AfterFunc(commitTime, func() { add(-1) }) }
}

// agreed says that a copy that was expected is agreed on.
func (c *claims) agreed(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.expected, name)
}

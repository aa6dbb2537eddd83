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

// The accesses are the uses of names of a job's files. The lock guards each access
// too; a commit waits for the end of one without it.
type accesses struct {
	mu struct {
		sync.Mutex
		access   map[string]*access       // of files and directories that are written, or committed
		expected map[string]int           // copies that come or have come, and may not be agreed on yet
		going    map[string]chan struct{} // copies that are given up, until it is closed
	}
}

func (all *accesses) init() {
	all.mu.access, all.mu.expected, all.mu.going = make(map[string]*access), make(map[string]int), make(map[string]chan struct{})
}

// An access is the use of a file or directory that may be committed: programs write
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

// opened has a file open to write until done is called, by whatever name.
func (f *files) opened(file *os.File) (done func(), err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return f.use(writtenName(info))
}

// use has a file used, to be written or changed otherwise, until done is called. One that is
// being committed is not.
func (all *accesses) use(name string) (done func(), err error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for in := name; in != "."; in = path.Dir(in) {
		if a := all.mu.access[in]; a != nil && a.writers < 0 {
			return nil, errCommitting(name)
		}
	}
	a := all.mu.access[name]
	if a == nil {
		a = &access{unused: make(chan struct{})}
		all.mu.access[name] = a
	}
	a.writers++
	return func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		if a.writers--; a.writers == 0 {
			all.unused(name)
		}
	}, nil
}

func errCommitting(name string) error {
	return fmt.Errorf("%s %w: it is being committed; rename it once more to learn what became of it", path.Base(name), meta.ErrBusy)
}

// commit waits until a file, or what is in a directory, is not used, and keeps it so until
// done is called.
func (all *accesses) commit(ctx context.Context, name string) (done func(), err error) {
	late := time.NewTimer(leaseTime)
	defer late.Stop()
	for {
		unused := all.seize(name)
		if unused == nil {
			return func() {
				all.mu.Lock()
				defer all.mu.Unlock()
				all.unused(name)
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
func (all *accesses) seize(name string) (unused <-chan struct{}) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for used, a := range all.mu.access {
		if used == name || strings.HasPrefix(used, name+"/") {
			return a.unused
		}
	}
	all.mu.access[name] = &access{writers: -1, unused: make(chan struct{})}
	return nil
}

func (all *accesses) unused(name string) {
	close(all.mu.access[name].unused)
	delete(all.mu.access, name)
}

// writtenName stands, among names, for a file that is open to write: its own may change.
func writtenName(file os.FileInfo) string { return fmt.Sprintf("opened/%d", inode(file)) }

func links(info os.FileInfo) uint64 { return uint64(info.Sys().(*syscall.Stat_t).Nlink) }
func inode(info os.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

// commitTime is how long after its last copy was sent a commit is agreed on, or never.
const commitTime = 2 * agreeTime

// giveUp gives a copy up, unless it is expected. Who comes to expect it waits until it is gone.
func (all *accesses) giveUp(name string, expected func() bool, remove func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if expected() {
		return
	}
	gone := make(chan struct{})
	all.mu.going[name] = gone
	all.mu.Unlock()
	remove() // without the lock, as a disk may not answer
	all.mu.Lock()
	delete(all.mu.going, name)
	close(gone)
}

// expect keeps a copy from being given up, until commitTime after the returned function
// was called.
func (all *accesses) expect(name string) (done func()) {
	add := func(n int) {
		all.mu.Lock()
		defer all.mu.Unlock()
		for n > 0 && all.mu.going[name] != nil {
			gone := all.mu.going[name]
			all.mu.Unlock()
			<-gone
			all.mu.Lock()
		}
		if all.mu.expected[name] += n; all.mu.expected[name] <= 0 { // or it was agreed on meanwhile
			delete(all.mu.expected, name)
		}
	}
	add(1)
	return func() { time.AfterFunc(commitTime, func() { add(-1) }) }
}

// agreed says that a copy that was expected is agreed on.
func (all *accesses) agreed(name string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.mu.expected, name)
}

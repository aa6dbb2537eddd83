package access

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"rankfs/meta"
)

// Names are the uses of names of a job's files. The lock guards each access
// too; a commit waits for the end of one without it.
type Names struct {
	agreedTime time.Duration

	mu struct {
		sync.Mutex
		access   map[string]*access       // of files and directories that are written, or committed
		expected map[string]int           // copies that come or have come, and may not be agreed on yet
		going    map[string]chan struct{} // copies that are given up, until it is closed
	}
}

// Init begins with none. A copy that was expected is so for agreedTime longer: a commit is agreed on
// within that after its last copy was sent, or never.
func (all *Names) Init(agreedTime time.Duration) {
	all.agreedTime = agreedTime
	all.mu.access, all.mu.expected, all.mu.going = make(map[string]*access), make(map[string]int), make(map[string]chan struct{})
}

// An access is the use of a file or directory that may be committed: programs write
// it, or it is being committed, never both. The lease that a commit takes does not tell
// alone, as of an open that was answered a moment ago the kernel has no descriptor yet.
type access struct {
	writers int // below zero: it is being committed
	unused  chan struct{}
}

// Use has a file used, to be written or changed otherwise, until done is called. One that is
// being committed is not.
func (all *Names) Use(name string) (done func(), err error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for in := name; in != "."; in = path.Dir(in) {
		if a := all.mu.access[in]; a != nil && a.writers < 0 {
			return nil, ErrCommitting(name)
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

// ErrCommitting is why a file is not written.
func ErrCommitting(name string) error {
	return fmt.Errorf("%s %w: it is being committed; rename it once more to learn what became of it", path.Base(name), meta.ErrBusy)
}

// Commit waits until a file, or what is in a directory, is not used, and keeps it so until
// done is called.
func (all *Names) Commit(ctx context.Context, name string) (done func(), err error) {
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
			return nil, cmp.Or(ctx.Err(), context.Canceled)
		}
	}
}

// seize takes a file or directory for a commit; or, if it is used, returns what is closed
// when some of that use is over.
func (all *Names) seize(name string) (unused <-chan struct{}) {
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

func (all *Names) unused(name string) {
	close(all.mu.access[name].unused)
	delete(all.mu.access, name)
}

// A Held is what is used and expected, while that does not change.
type Held struct{ all *Names }

// Used reports whether a file is written, or committed.
func (h Held) Used(name string) bool { return h.all.mu.access[name] != nil }

// Uses reports whether a file is written, or committed.
func (all *Names) Uses(name string) bool {
	return all.Look(func(h Held) bool { return h.Used(name) })
}

// Expected reports whether a copy is, that has the name or may get it.
func (h Held) Expected(name string) bool { return h.all.mu.expected[name] > 0 }

// Look is what f says while nothing changes.
func (all *Names) Look(f func(Held) bool) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return f(Held{all})
}

// GiveUp gives a copy up, unless it is expected. A caller that comes to expect it waits until it is gone.
func (all *Names) GiveUp(name string, expected func(Held) bool, remove func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if expected(Held{all}) {
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

// Expect keeps a copy from being given up, until agreedTime after the returned function
// was called.
func (all *Names) Expect(name string) (done func()) {
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
	return func() { time.AfterFunc(all.agreedTime, func() { add(-1) }) }
}

// Agreed says that a copy that was expected is agreed on.
func (all *Names) Agreed(name string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.mu.expected, name)
}

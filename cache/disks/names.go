package disks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"rankfs/meta/slowdisk"
)

var errClosing = errors.New("the tier is being closed")

// found is a slab of an earlier daemon that no index told of.
type found struct {
	label
	real int64
	when time.Time
}

// A lister looks through the names of a directory: the truth about its slabs.
type lister struct {
	slabs   *slabs
	health  *health
	evictor *evictor
	closing atomic.Bool
}

// seeNames is list for a directory that is in use meanwhile.
func (l *lister) seeNames(p *place) {
	if err := l.list(p); err != nil && !l.closing.Load() {
		l.health.Fail(err, true)
	}
}

// list reads all names: slabs missing from the index are added, slabs in the index
// without a file are forgotten, unfinished files of an earlier daemon are removed,
// and foreign files are left alone. Then slabs may be written.
func (l *lister) list(p *place) error {
	all, err := watch(l.health, func(w *slowdisk.Work) ([]found, error) { return l.names(w, p) }, nil)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	l.disown(p)
	slices.SortStableFunc(all, func(a, b found) int { return a.when.Compare(b.when) })
	for _, f := range all {
		if taken := l.adopt(p, f); taken {
			_ = l.health.call(func() error { return p.Root.Remove(f.name()) })
		}
	}
	close(p.listed)
	_ = l.evictor.trim(nil) // the oldest go; what cannot go now has to before anything is written
	return nil
}

// names lists the slabs of a directory that are not known yet. It stops if it is left
// behind, or the tier is closed.
func (l *lister) names(w *slowdisk.Work, p *place) (all []found, err error) {
	var dir *os.File
	err = w.Do(func() (err error) {
		dir, err = p.Root.Open(".")
		return err
	})
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	for {
		err := w.Do(func() error {
			names, err := dir.Readdirnames(1024)
			for _, name := range names {
				if f, ok := l.see(p, name); ok {
					all = append(all, f)
				}
			}
			return err
		})
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if l.closing.Load() {
			return nil, errClosing
		}
	}
}

// see looks at a name, and returns the slab if it is unknown. What is no whole slab is
// removed.
func (l *lister) see(p *place, name string) (f found, ok bool) {
	if strings.HasPrefix(name, partPrefix) && !strings.HasPrefix(name, p.parts) {
		_ = p.Root.Remove(name)
		return f, false
	}
	says, ok := parseName(name)
	if !ok || l.known(says) {
		return f, false
	}
	info, err := p.Root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return f, false
	}
	if info.Size() != says.size { // cut short: it counts as damaged
		l.slabs.mu.Lock()
		l.slabs.mu.count.damaged++
		l.slabs.mu.Unlock()
		_ = p.Root.Remove(name)
		return f, false
	}
	return found{says, realOf(info), info.ModTime()}, true
}

// known notes that a slab's name was seen.
func (l *lister) known(says label) bool {
	mu := &l.slabs.mu
	mu.Lock()
	defer mu.Unlock()
	id := mu.Find(says.key)
	if id == 0 || mu.label(id) != says {
		return false
	}
	mu.mark(id, seen)
	return true
}

// disown forgets the slabs that the index told of and that are not there.
func (l *lister) disown(p *place) {
	mu := &l.slabs.mu
	mu.Lock()
	defer mu.Unlock()
	if mu.place != p {
		return
	}
	for id := range mu.listed() {
		if !mu.is(id, seen) {
			mu.lose(id)
		}
	}
}

// adopt takes a slab of an earlier daemon on, unless its key is taken: of two for one
// key the first is kept, that which was there, or the older one.
func (l *lister) adopt(p *place, f found) (taken bool) {
	mu := &l.slabs.mu
	mu.Lock()
	defer mu.Unlock()
	if mu.place != p {
		return false
	}
	if mu.Find(f.key) != 0 {
		return true
	}
	mu.recall(f.label, f.real, true)
	mu.change++
	return false
}

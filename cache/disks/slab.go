package disks

import (
	"container/list"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

type unixStat = syscall.Stat_t

// A slab is a file that has its name.
type slab struct {
	label
	place    *place
	real     int64         // bytes on disk
	at       *list.Element // in recent; nil: it is being removed, or was
	users    int           // opens not released
	right    proof
	rejected bool     // counted as wrong
	seen     bool     // its name, by this daemon
	last     *os.File // when its name is gone: for the last user to bury
}

// A proof is when the bytes of a slab were last known to be right, and of which
// change of the file that was; zero: never, by this daemon.
type proof struct {
	at      time.Time
	changed unix.Timespec // its ctime, which nobody can set
}

// A dying file has no name any more but is still mapped by a rank.
type dying struct {
	file *os.File
	real int64
}

// A Slab is an open slab, until Release. It may be read concurrently.
type Slab struct {
	dir  *directory
	slab *slab
	file *os.File
	once sync.Once
}

// Fd is the slab's file, open to read.
func (s *Slab) Fd() uintptr { return s.file.Fd() }

// ReadAt reads bytes of the slab.
func (s *Slab) ReadAt(p []byte, off int64) (int, error) { return s.file.ReadAt(p, off) }

// Dir is the directory in which the slab is.
func (s *Slab) Dir() string { return s.dir.path }

// Check makes sure once more that the bytes are right, as Open did, for one who
// is to have the same open slab later. One that fails is not to be served.
func (s *Slab) Check() error {
	d := s.dir
	d.mu.Lock()
	right, lost := s.slab.right, d.blind() || d.mu.place != s.slab.place
	d.mu.Unlock()
	if lost {
		return fmt.Errorf("nvme directory %s: %w", d.path, errBlind)
	}
	if _, still, err := d.still(s.file, s.slab, right); err == nil && still {
		return nil // without a goroutine
	}
	err := d.do(func(j *job) error { return d.check(j, s.file, s.slab, right) })
	if err != nil && !outOfFiles(err) {
		d.reject(s.slab, err)
	}
	return err
}

// Release ends the open. A rank may still map the slab.
func (s *Slab) Release() {
	s.once.Do(func() {
		s.file.Close()
		s.dir.unuse(s.slab)
	})
}

// unuse ends the use of a slab, and reports whether it may be opened still.
func (d *directory) unuse(s *slab) bool {
	d.mu.Lock()
	s.users--
	f, there := s.last, s.at != nil
	if s.users > 0 {
		f = nil
	}
	d.mu.Unlock()
	if f != nil {
		d.bury(f, s.real)
	}
	return there
}

func (d *directory) has(k Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.mu.slabs[k]
	return s != nil && s.at != nil && !d.blind()
}

// take finds the slab of k for one more user.
func (d *directory) take(k Key) (s *slab, right proof) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s = d.mu.slabs[k]
	if s == nil || s.at == nil || d.blind() {
		return nil, right
	}
	s.users++
	d.mu.recent.MoveToFront(s.at)
	d.mu.change++
	return s, s.right
}

// open opens the slab of k. One whose bytes are not what they were is removed
// and counted, never served.
func (d *directory) open(k Key) (*Slab, error) {
	s, right := d.take(k)
	if s == nil {
		return nil, nil
	}
	f, err := watch(d, func(j *job) (*os.File, error) { return d.read(j, s, right) }, func(f *os.File) { f.Close() })
	if err == nil {
		return &Slab{dir: d, slab: s, file: f}, nil
	}
	there := d.unuse(s)
	if outOfFiles(err) {
		return nil, fmt.Errorf("open nvme slab: %w", err)
	}
	if there {
		d.reject(s, err)
	}
	return nil, nil
}

// reject gives up a slab that could not be read.
func (d *directory) reject(s *slab, cause error) {
	if told := d.tally(s, cause); told {
		d.log.Warn("nvme slab discarded", "slab", filepath.Join(d.path, s.name()), "cause", cause)
	}
	switch {
	case errors.Is(cause, errStuck):
		return
	case errors.Is(cause, fs.ErrNotExist):
		d.miss() // or was it all of them?
	case !errors.Is(cause, meta.ErrCorrupt):
		d.fail(cause, true)
	}
	if d.leave(s) {
		_ = d.remove(s)
	}
}

// tally counts why a slab is rejected. One that an index from before a crash
// told of, and nobody has seen, is no loss.
func (d *directory) tally(s *slab, cause error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.right = proof{} // should it stay
	known := s.rejected
	s.rejected = true
	switch {
	case known: // by another who had it open
		return false
	case errors.Is(cause, meta.ErrCorrupt):
		d.mu.count.damaged++
	case !errors.Is(cause, fs.ErrNotExist):
		d.mu.count.failed++
	case s.seen:
		d.mu.count.lost++
	default:
		return false
	}
	return true
}

// leave takes a slab from those that may be opened, to be removed, and reports
// whether it was one.
func (d *directory) leave(s *slab) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drop(s)
}

// drop is leave. mu is held.
func (d *directory) drop(s *slab) bool {
	if s == nil || s.at == nil {
		return false
	}
	d.mu.recent.Remove(s.at)
	s.at = nil
	d.mu.change++
	return true
}

// remove removes the name of a slab that leaves. If that fails it stays. A
// rank may map it still: then its bytes count until the rank is done.
func (d *directory) remove(s *slab) error {
	d.mu.Lock()
	d.mu.removing++
	d.mu.Unlock()
	return d.do(func(*job) error {
		defer d.endRemoval()
		f, openErr := s.place.open(s.name())
		err := s.place.root.Remove(s.name())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			if openErr == nil {
				f.Close()
			}
			d.stay(s)
			d.fail(fmt.Errorf("remove slab: %w", err), false)
			return err
		}
		d.mu.Lock()
		delete(d.mu.slabs, s.key)
		held := s.users > 0
		switch {
		case openErr != nil: // nothing is there, or nothing can be known of it
			d.mu.used -= s.real
		case held:
			s.last = f
		}
		d.mu.Unlock()
		if openErr == nil && !held {
			d.settle(f, s.real)
		}
		return nil
	})
}

func (d *directory) endRemoval() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.removing--
	close(d.mu.removed)
	d.mu.removed = make(chan struct{})
}

// stay undoes leave, unless the place has been given up meanwhile.
func (d *directory) stay(s *slab) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.place == d.mu.place {
		s.at = d.mu.recent.PushFront(s)
		return
	}
	delete(d.mu.slabs, s.key)
	d.mu.used -= s.real
}

// bury gives back a file that has no name.
func (d *directory) bury(f *os.File, real int64) {
	_ = d.do(func(*job) error { d.settle(f, real); return nil })
}

// settle closes a file that has no name, which frees its blocks, unless
// somebody maps it.
func (d *directory) settle(f *os.File, real int64) {
	if !unmapped(f) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.mu.dying = append(d.mu.dying, dying{f, real})
		return
	}
	f.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.used -= real
}

// sweep lets go of dying files that nobody maps any more and reports whether
// there were any.
func (d *directory) sweep() bool {
	d.mu.Lock()
	all := d.mu.dying
	d.mu.dying = nil
	d.mu.Unlock()
	if len(all) == 0 {
		return false
	}
	still := slices.Clone(all)
	still = slices.DeleteFunc(still, func(y dying) bool { return unmapped(y.file) })
	d.mu.Lock()
	d.mu.dying = append(d.mu.dying, still...)
	d.mu.Unlock()
	for _, y := range all {
		if !slices.Contains(still, y) {
			d.bury(y.file, y.real)
		}
	}
	return len(still) < len(all)
}

// forget drops all that is known of a place that is no more, or another's now.
// What ranks hold there counts no longer.
func (d *directory) forget(p *place) {
	d.mu.Lock()
	for k, s := range d.mu.slabs {
		if s.at == nil {
			continue // whoever removes it finds out
		}
		d.drop(s)
		delete(d.mu.slabs, k)
		d.mu.used -= s.real
	}
	d.mu.used -= d.mu.index
	d.mu.index = 0
	d.mu.place = nil
	d.mu.Unlock()
	p.close()
}

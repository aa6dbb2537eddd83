package disks

import (
	"container/list"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

type unixStat = syscall.Stat_t

// realOf is what a file takes on its disk, in bytes.
func realOf(info fs.FileInfo) int64 { return info.Sys().(*unixStat).Blocks * 512 }

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
	if err != nil && !OutOfFiles(err) {
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
	if OutOfFiles(err) {
		return nil, fmt.Errorf("open nvme slab: %w: %w", err, ErrNoRoom)
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

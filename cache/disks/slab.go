package disks

import (
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
func realOf(info fs.FileInfo) int64 { return info.Sys().(*unixStat).Blocks * block }

// A slab is one that is in use, or on its way in or out: there is more to say
// of it than the table has room for.
type slab struct {
	label
	id       uint32 // in the table; 0: no more
	place    *place
	real     int64 // bytes on disk
	users    int   // opens not released
	right    proof
	rejected bool     // counted as wrong
	last     *os.File // when its name is gone: for the last user to bury
}

// A proof is when this daemon last knew the bytes of a slab to be right, and the
// file's ctime then. The zero proof means never.
type proof struct {
	at      time.Time
	changed unix.Timespec // its ctime, which no process can set
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

// Dir is the path of the slab's directory.
func (s *Slab) Dir() string { return s.dir.path }

// Check verifies the bytes once more, as Open did, before an open slab is handed to
// a later reader. A slab that fails must not be served.
func (s *Slab) Check() error {
	d := s.dir
	d.mu.Lock()
	right, lost := s.slab.right, d.unreadable() || d.mu.place != s.slab.place
	d.mu.Unlock()
	if lost {
		return fmt.Errorf("nvme directory %s: %w", d.path, errUnreadable)
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

// unuse ends the use of a slab.
func (d *directory) unuse(s *slab) {
	d.mu.Lock()
	s.users--
	f := s.last
	if s.users > 0 {
		f = nil
	}
	d.release(s)
	d.mu.Unlock()
	if f != nil {
		d.bury(f, s.real)
	}
}

func (d *directory) has(k Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.find(k) != 0 && !d.unreadable()
}

// find is the slab of k, if it may be opened. mu is held.
func (d *directory) find(k Key) (id uint32) {
	if id = d.mu.slabs.Find(k); d.mu.place == nil || !d.mu.slabs.is(id, listed) {
		return 0
	}
	return id
}

// there reports whether a slab may be opened. mu is held.
func (d *directory) there(s *slab) bool { return s != nil && d.mu.slabs.is(s.id, listed) }

// hold is the slab of a number that find returned. mu is held.
func (d *directory) hold(id uint32) *slab {
	s, t := d.mu.held[id], d.mu.slabs
	if s == nil && id != 0 {
		s = &slab{label: t.label(id), id: id, place: d.mu.place, real: t.real(id), right: t.proof(id), rejected: t.is(id, rejected)}
		d.mu.held[id] = s
	}
	return s
}

// release leaves a slab to the table, unless there is more to say of it. mu is held.
func (d *directory) release(s *slab) {
	if s.users > 0 || !d.there(s) {
		return
	}
	d.mu.slabs.prove(s.id, s.right)
	if s.rejected {
		d.mu.slabs.mark(s.id, rejected)
	}
	delete(d.mu.held, s.id)
	s.id = 0
}

// admit lets a slab be opened, unless its place has been given up meanwhile. mu
// is held.
func (d *directory) admit(s *slab) {
	if s.place != d.mu.place {
		d.erase(s.id)
		d.mu.used -= s.real
		return
	}
	d.mu.slabs.list(s.id)
	d.release(s)
}

// erase takes a slab from the table. mu is held.
func (d *directory) erase(id uint32) {
	if s := d.mu.held[id]; s != nil {
		s.id = 0
		delete(d.mu.held, id)
	}
	d.mu.slabs.remove(id)
}

// take finds the slab of k for one more user.
func (d *directory) take(k Key) (s *slab, right proof) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := d.find(k)
	if id == 0 || d.unreadable() {
		return nil, right
	}
	s = d.hold(id)
	s.users++
	d.mu.slabs.touch(id)
	d.mu.change++
	return s, s.right
}

// open opens the slab of k. A slab whose bytes have changed is removed and counted,
// never served.
func (d *directory) open(k Key) (*Slab, error) {
	s, right := d.take(k)
	if s == nil {
		return nil, nil
	}
	f, err := watch(d, func(j *job) (*os.File, error) { return d.read(j, s, right) }, func(f *os.File) { f.Close() })
	if err == nil {
		return &Slab{dir: d, slab: s, file: f}, nil
	}
	defer d.unuse(s)
	return nil, d.unread(s, err)
}

// copyOf fills mem with the slab of k, and reports whether there was one of that
// size. It treats a slab as open does, but closes the descriptor.
func (d *directory) copyOf(k Key, mem []byte) (ok bool, err error) {
	s, _ := d.take(k)
	if s == nil {
		return false, nil
	}
	defer d.unuse(s)
	if s.size != int64(len(mem)) {
		return false, nil
	}
	err = d.do(func(j *job) error {
		f, err := s.place.open(s.name())
		if err != nil {
			return err
		}
		defer f.Close()
		changed, _, err := d.still(f, s, proof{})
		if err != nil {
			return err
		}
		return d.prove(j, f, s, changed, mem)
	})
	if err == nil {
		return true, nil
	}
	return false, d.unread(s, err)
}

// unread rejects a slab that could not be read, unless the cause is a lack of
// descriptors.
func (d *directory) unread(s *slab, cause error) error {
	if OutOfFiles(cause) {
		return fmt.Errorf("open nvme slab: %w", ErrOutOfFiles)
	}
	d.mu.Lock()
	there := d.there(s)
	d.mu.Unlock()
	if there {
		d.reject(s, cause)
	}
	return nil
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

// tally counts why a slab is rejected. A missing slab whose name this daemon never
// saw, known only from an index written before a crash, does not count as lost.
func (d *directory) tally(s *slab, cause error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.right = proof{} // should it stay
	known := s.rejected
	s.rejected = true
	switch {
	case known: // by another user of the slab
		return false
	case errors.Is(cause, meta.ErrCorrupt):
		d.mu.count.damaged++
	case !errors.Is(cause, fs.ErrNotExist):
		d.mu.count.failed++
	case d.mu.slabs.is(s.id, seen):
		d.mu.count.lost++
	default:
		return false
	}
	return true
}

package disks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/slowdisk"
)

// A Slab is an open slab, until Release. It may be read concurrently.
type Slab struct {
	from *reader
	slab *slab
	file *os.File
	once sync.Once
}

// Fd is the slab's file, open to read.
func (s *Slab) Fd() uintptr { return s.file.Fd() }

// ReadAt reads bytes of the slab.
func (s *Slab) ReadAt(p []byte, off int64) (int, error) { return s.file.ReadAt(p, off) }

// Dir is the path of the slab's directory.
func (s *Slab) Dir() string { return s.from.health.Dir }

// Check verifies the bytes once more, as Open did, before an open slab is handed to
// a later reader. A slab that fails must not be served.
func (s *Slab) Check() error {
	r := s.from
	right, lost := r.slabs.right(s.slab)
	if lost || r.health.Unreadable() != nil {
		return fmt.Errorf("nvme directory %s: %w", r.health.Dir, errUnreadable)
	}
	if _, still, err := s.slab.still(s.file, right, r.trust); err == nil && still {
		return nil // without a goroutine
	}
	err := r.health.do(func(w *slowdisk.Work) error { return r.check(w, s.file, s.slab, right) })
	if err != nil && !meta.OutOfFiles(err) {
		r.reject(s.slab, err)
	}
	return err
}

// Release ends the open. A rank may still map the slab.
func (s *Slab) Release() {
	s.once.Do(func() {
		s.file.Close()
		s.from.unuse(s.slab)
	})
}

// A reader opens slabs, after making sure that their bytes are right, and gives up those
// that are wrong or that the disk does not read.
type reader struct {
	slabs   *slabs
	health  *health
	evictor *evictor
	trust   time.Duration
}

// readable is the directory's place, or why it is not read now.
func (r *reader) readable() (*place, error) {
	p := r.slabs.place()
	switch err := r.health.Unreadable(); {
	case err != nil:
		return nil, err
	case p == nil:
		return nil, errUnreadable
	}
	return p, nil
}

// miss checks whether the path still leads to the place. If not, the directory lets
// go of the disk, so that an admin can take it out.
func (r *reader) miss() {
	p, err := r.readable()
	if err != nil {
		return
	}
	if err := r.health.call(p.Probe); err != nil {
		r.health.Fail(err, true)
	}
}

// unuse ends the use of a slab.
func (r *reader) unuse(s *slab) {
	if last := r.slabs.unuse(s); last != nil {
		r.evictor.unlinked.add(last, s.real)
	}
}

// has reports whether the slab of k is there, and can be read.
func (r *reader) has(k Key) bool { return r.slabs.has(k) && r.health.Unreadable() == nil }

// take finds the slab of k for one more user, if it can be read.
func (r *reader) take(k Key) (s *slab, right proof) {
	if r.health.Unreadable() != nil {
		return nil, right
	}
	return r.slabs.take(k)
}

// open opens the slab of k. A slab whose bytes have changed is removed and counted,
// never served.
func (r *reader) open(k Key) (*Slab, error) {
	s, right := r.take(k)
	if s == nil {
		return nil, nil
	}
	f, err := watch(r.health, func(w *slowdisk.Work) (*os.File, error) { return r.read(w, s, right) }, func(f *os.File) { f.Close() })
	if err == nil {
		return &Slab{from: r, slab: s, file: f}, nil
	}
	defer r.unuse(s)
	return nil, r.unread(s, err)
}

// copyOf fills mem with the slab of k, and reports whether there was one of that
// size. It treats a slab as open does, but closes the descriptor.
func (r *reader) copyOf(k Key, mem []byte) (ok bool, err error) {
	s, _ := r.take(k)
	if s == nil {
		return false, nil
	}
	defer r.unuse(s)
	if s.size != int64(len(mem)) {
		return false, nil
	}
	err = r.health.do(func(w *slowdisk.Work) error {
		f, changed, _, err := s.open(w, proof{}, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		return r.prove(w, f, s, changed, mem)
	})
	if err == nil {
		return true, nil
	}
	return false, r.unread(s, err)
}

// read opens a slab's file and makes sure that its bytes are right. It need not hash
// them if this daemon has hashed or written them, no process has written to the file
// since, and they either stayed in the page cache or were hashed a moment ago.
func (r *reader) read(w *slowdisk.Work, s *slab, right proof) (*os.File, error) {
	f, changed, still, err := s.open(w, right, r.trust)
	if err != nil {
		return nil, err
	}
	if still {
		return f, nil
	}
	if err := r.prove(w, f, s, changed, nil); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// check is read for a file that is open.
func (r *reader) check(w *slowdisk.Work, f *os.File, s *slab, right proof) error {
	var changed unix.Timespec
	still := false
	err := w.Do(func() (err error) {
		changed, still, err = s.still(f, right, r.trust)
		return err
	})
	if err != nil || still {
		return err
	}
	return r.prove(w, f, s, changed, nil)
}

// prove reads all of a slab, into mem unless that is nil, and notes that it is
// right as of a change of its file.
func (r *reader) prove(w *slowdisk.Work, f *os.File, s *slab, changed unix.Timespec, mem []byte) error {
	if err := verify(w, f, s.label, mem); err != nil {
		return err
	}
	r.slabs.proven(s, proof{time.Now(), changed})
	return nil
}

// unread rejects a slab that could not be read, unless the cause is a lack of
// descriptors.
func (r *reader) unread(s *slab, cause error) error {
	if meta.OutOfFiles(cause) {
		return fmt.Errorf("open nvme slab: %w", ErrOutOfFiles)
	}
	if r.slabs.isThere(s) {
		r.reject(s, cause)
	}
	return nil
}

// reject gives up a slab that could not be read.
func (r *reader) reject(s *slab, cause error) {
	if told := r.slabs.tally(s, cause); told {
		r.health.Log.Warn("nvme slab discarded", "slab", filepath.Join(r.health.Dir, s.name()), "cause", cause)
	}
	switch {
	case errors.Is(cause, errStuck):
		return
	case errors.Is(cause, fs.ErrNotExist):
		r.miss() // or the whole directory is gone
	case !errors.Is(cause, meta.ErrCorrupt):
		r.health.Fail(cause, true)
	}
	if r.slabs.drop(s) {
		_ = r.evictor.remove(s)
	}
}

package disks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A dying file has no name any more but is still mapped by a rank.
type dying struct {
	file *os.File
	real int64
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
	if !d.there(s) {
		return false
	}
	d.mu.slabs.unlist(s.id)
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
		d.erase(s.id)
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

// stay undoes leave.
func (d *directory) stay(s *slab) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.admit(s)
}

// bury gives back a file that has no name.
func (d *directory) bury(f *os.File, real int64) {
	_ = d.do(func(*job) error { d.settle(f, real); return nil })
}

// settle closes a file without a name, which frees its blocks, unless a rank still
// maps it: then the file is dying.
func (d *directory) settle(f *os.File, real int64) {
	if !Unmapped(int(f.Fd())) {
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

// sweep closes the dying files that no rank maps any more and reports whether there
// were any.
func (d *directory) sweep() bool {
	d.mu.Lock()
	all, looking := d.mu.dying, int64(0)
	for _, y := range all {
		looking += y.real
	}
	d.mu.dying = nil
	d.mu.looking += looking
	d.mu.Unlock()
	var still, free []dying
	for _, y := range all {
		if Unmapped(int(y.file.Fd())) {
			free = append(free, y)
		} else {
			still = append(still, y)
		}
	}
	d.mu.Lock()
	d.mu.dying = append(d.mu.dying, still...)
	d.mu.looking -= looking
	d.mu.Unlock()
	for _, y := range free {
		d.bury(y.file, y.real)
	}
	return len(free) > 0
}

// forget drops all slabs of a place that is gone, or no longer this daemon's. Files
// that ranks hold open there no longer count.
func (d *directory) forget(p *place) {
	d.mu.Lock()
	for id := range d.mu.slabs.listed() { // the goroutine that removes an unlisted slab finds out by itself
		d.lose(id)
	}
	d.mu.used -= d.mu.index
	d.mu.index = 0
	d.mu.place = nil
	d.mu.Unlock()
	p.close()
}

// lose forgets a slab that may be opened and is not there. mu is held.
func (d *directory) lose(id uint32) {
	d.mu.used -= d.mu.slabs.real(id)
	d.mu.change++
	d.erase(id)
}

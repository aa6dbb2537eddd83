package disks

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/fault"
)

// A producer writes a whole slab into a file that has its size and its blocks
// already, and returns its sum.
type producer func(d *directory, f *os.File) (uint64, error)

// errRefused: the disk did not do what a slab needs.
var errRefused = fmt.Errorf("its disk refused: %w", ErrNoRoom)

func refused(err error) error {
	if err == nil || errors.Is(err, ErrNoRoom) {
		return err
	}
	if OutOfFiles(err) {
		return ErrOutOfFiles
	}
	return fmt.Errorf("%w: %w", err, errRefused)
}

// An unfinished slab has a name that says no more than that.
type unfinished struct {
	place *place
	name  string
	file  *os.File
	real  int64
	spare spare // what may go for it
}

// partPrefix begins the names of unfinished files. Those of another place are
// removed: of another daemon, which is gone if it cannot hold the lock, or of this
// one before the disk failed, when it could not remove them.
const partPrefix = ".part-"

// write makes the slab of k in this directory.
func (d *directory) write(k Key, size int64, produce producer, may spare) error {
	p, err := d.writable()
	if err != nil {
		return err
	}
	if err := d.reserve(p, p.blocks(size), may); err != nil {
		return err
	}
	u, err := watch(d, func(*job) (*unfinished, error) { return d.begin(p, size, may) }, d.discard)
	if err != nil {
		return d.refusal(err)
	}
	sum, err := produce(d, u.file)
	if err != nil {
		_ = d.do(func(*job) error { d.discard(u); return nil })
		return d.refusal(err)
	}
	return d.refusal(d.do(func(j *job) error {
		err := d.publish(j, u, label{k, size, sum})
		if err != nil {
			d.discard(u)
		}
		return err
	}))
}

// refusal suspends the directory if its disk refused.
func (d *directory) refusal(err error) error {
	if errors.Is(err, errRefused) {
		d.fail(err, false)
	}
	return err
}

// begin makes a file with the blocks for a slab, which have been reserved.
func (d *directory) begin(p *place, size int64, may spare) (*unfinished, error) {
	d.mu.Lock()
	d.mu.serial++
	u := &unfinished{place: p, name: p.parts + strconv.FormatUint(d.mu.serial, 10), real: p.blocks(size), spare: may}
	d.mu.Unlock()
	defer p.pending.Add(-u.real) // from here on the file system counts them
	var err error
	if u.file, err = p.root.OpenFile(u.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0600); err != nil {
		d.unreserve(u.real)
		return nil, refused(err)
	}
	if size > 0 {
		err = unix.Fallocate(int(u.file.Fd()), 0, 0, size)
	}
	if err == nil {
		err = d.weigh(u)
	}
	if err != nil {
		d.discard(u)
		return nil, refused(err)
	}
	return u, nil
}

// weigh counts what the file really takes.
func (d *directory) weigh(u *unfinished) error {
	info, err := u.file.Stat()
	if err != nil {
		return err
	}
	real := realOf(info)
	d.mu.Lock()
	d.mu.used += real - u.real
	u.real = real
	d.mu.Unlock()
	return d.trim(u.spare)
}

// discard removes an unfinished file.
func (d *directory) discard(u *unfinished) {
	err := u.place.root.Remove(u.name)
	u.file.Close()
	if err != nil {
		d.log.Debug("unfinished nvme slab not removed", "dir", d.path, "cause", err)
	}
	d.unreserve(u.real)
}

// copyTo writes mem, which may change as soon as copyTo has returned: what is
// written then gets no name.
func (d *directory) copyTo(f *os.File, mem []byte) error {
	// A write gets the largest folio that fits, and ranks feel that.
	const step = 4 << 20
	return refused(d.do(func(j *job) error {
		for at := 0; at < len(mem); at += step {
			if _, err := f.WriteAt(mem[at:min(at+step, len(mem))], int64(at)); err != nil {
				return err
			}
			j.alive()
		}
		return nil
	}))
}

// fillMapped lets fill write the slab through a mapping of its file, which the
// kernel writes out as it must: a slab may be larger than memory.
func fillMapped(k Key, size int64, f *os.File, fill func(mem []byte) error) (sum uint64, err error) {
	if size == 0 {
		return sumOf(k, nil), fill(nil)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return 0, refused(err)
	}
	defer unix.Munmap(mem)
	// Or the file's cache is of small pages in part, which ranks feel for as
	// long as it lives. Advice: an error is no matter.
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	err = fault.Guard(func() error {
		if err := fill(mem); err != nil {
			return err
		}
		sum = sumOf(k, mem)
		return nil
	})
	// The disk failed under a mapped page; the fill may have met the failure itself.
	if errors.Is(err, unix.EFAULT) || errors.Is(err, meta.ErrNoSpace) {
		return 0, refused(err)
	}
	return sum, err
}

// publish gives the file its name.
func (d *directory) publish(j *job, u *unfinished, l label) error {
	if err := d.weigh(u); err != nil { // the map of its blocks may have grown
		return refused(err)
	}
	s := &slab{label: l, place: u.place, real: u.real}
	if !d.enlist(s) {
		return fmt.Errorf("its predecessor is being removed: %w", ErrNoRoom)
	}
	if !j.alive() {
		d.delist(s)
		return errStuck
	}
	if err := u.place.root.Rename(u.name, s.name()); err != nil {
		d.delist(s)
		return refused(err)
	}
	info, err := u.file.Stat()
	u.file.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil { // or it is hashed when it is opened
		s.right = proof{time.Now(), changeOf(info)}
	}
	d.admit(s)
	d.mu.change++
	return nil
}

// enlist makes the slab the one of its key, which cannot be opened yet.
func (d *directory) enlist(s *slab) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.slabs.Find(s.key) != 0 || d.mu.place != s.place {
		return false
	}
	if s.id = d.mu.slabs.insert(s.label, s.real); s.id == 0 {
		return false
	}
	d.mu.slabs.mark(s.id, seen)
	d.mu.held[s.id] = s
	return true
}

func (d *directory) delist(s *slab) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erase(s.id)
}

package disks

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/fault"
	"rankfs/meta/slowdisk"
)

// A producer writes a whole slab into a file that has its size and its blocks
// already, and returns its sum.
type producer func(f *File) (uint64, error)

// write makes the slab of k in this directory.
func (d *directory) write(k Key, size int64, produce producer, may spare) error {
	p, err := d.writable()
	if err != nil {
		return err
	}
	begin := func(w *slowdisk.Work) (*unfinished, error) { return d.evictor.begin(w, p, size, may) }
	u, err := withRoom(d.evictor, p, size, may, begin, func(late *unfinished) { late.drop(nil) })
	if err != nil {
		return err
	}
	sum, err := produce(&u.File)
	if err != nil {
		_ = d.health.finish(func(w *slowdisk.Work) error {
			u.drop(w)
			return nil
		})
		return d.health.refusal(err)
	}
	return d.health.refusal(d.health.finish(func(w *slowdisk.Work) error {
		err := d.publish(w, u, label{k, size, sum})
		if err != nil {
			u.drop(w)
		}
		return err
	}))
}

// copyOut writes mem, which may change as soon as copyOut has returned: what is
// written then gets no name.
func (f *File) copyOut(mem []byte) error {
	return refused(f.health.do(func(w *slowdisk.Work) error { return f.file.WriteAt(w, mem, 0) }))
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
func (d *directory) publish(w *slowdisk.Work, u *unfinished, l label) error {
	if err := w.Do(u.weigh); err != nil { // the map of its blocks may have grown
		return refused(err)
	}
	s := &slab{label: l, place: u.place, real: u.file.Takes}
	if !d.slabs.expect(s) {
		return meta.Worded(ErrNoRoom, "its predecessor is being removed")
	}
	if err := u.seal(w, s.name()); err != nil {
		d.slabs.miss(s)
		return refused(err)
	}
	var right proof
	if info, err := u.file.Bytes.Stat(); err == nil { // or it is hashed when it is opened
		right = proof{time.Now(), changeOf(info)}
	}
	u.Close()
	d.slabs.publish(s, right)
	return nil
}

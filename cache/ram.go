package cache

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"rankfs/cache/disks"
	"rankfs/meta"
)

// ram is the tier of slabs in memory: unnamed files on a private tmpfs with
// huge pages.
//
// The daemon keeps its own writable mapping of each file as long as there are not
// many. To fill a file that was used before is then a plain copy into pages
// that are there and mapped, 25 GB/s, where a fresh file costs its zeroing too.
// The mapping does not stand in the way of the write lease.
//
// If there are many, files that are open nowhere lose mapping and descriptor: see
// descriptors, and handles.go. What takes its budget is in the ramBudget; uses of it beside files
// are in ramuses.go.
//
// Its lock may be taken while that of a file is held; while it is held no other is taken.
// Files are closed without it, but by close.
type ram struct {
	budget    atomic.Int64
	dir       *os.File
	root      *os.File // the same, for handles
	slotFile  *slotFile
	maxFiles  int // with a mapping: the kernel lets a process have so many
	idleFiles int // of them, of which no more are kept that are open nowhere

	handles bool // files can be opened again by theirs

	mu struct {
		sync.Mutex
		ramBudget
		spare    []*ramFile // filled once, of no batch now, ready to be filled again
		dying    []*ramFile // retired, but some rank still maps them
		looking  []*ramFile // dying, as far as is known: sweep is finding out
		recycled uint64     // takes that were served by a spare file
	}
}

// take returns a file of the given size whose bytes are anything, or errNoRoom
// if that would exceed the budget.
func (r *ram) take(size int64) (*ramFile, error) {
	need := meta.WholePages(size)
	f, discard, err := r.reserve(need)
	for _, d := range discard {
		d.close()
	}
	if err != nil {
		return nil, err
	}
	if f == nil {
		f, err = r.create(size)
		for errors.Is(err, errNoRoom) && r.closeSpare() {
			f, err = r.create(size)
		}
	} else {
		err = f.ready(size)
	}
	if err != nil {
		r.release(need)
		return nil, err
	}
	return f, nil
}

func (r *ram) create(size int64) (*ramFile, error) {
	fd, err := unix.Openat(int(r.dir.Fd()), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0600)
	if err == nil {
		if err = disks.Affordable(fd); err != nil {
			unix.Close(fd)
		}
	}
	if meta.OutOfFiles(err) {
		// The caller evicts as if memory were full: that frees a descriptor.
		return nil, fmt.Errorf("create ram slab: %w", disks.ErrOutOfFiles)
	}
	if err != nil {
		return nil, fmt.Errorf("create ram slab: %w", err)
	}
	f := &ramFile{fd: fd, size: size, real: meta.WholePages(size)}
	if err := f.grow(size); err != nil {
		f.close()
		return nil, fmt.Errorf("create ram slab of %d bytes: %w", size, err)
	}
	return f, nil
}

// reserve finds a spare file of exactly so many pages, or sets bytes aside for
// a fresh one, taking them from spare files of other sizes if it must.
func (r *ram) reserve(need int64) (f *ramFile, discard []*ramFile, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The file used last is the likeliest to be in the processor's cache.
	for i := len(r.mu.spare) - 1; i >= 0; i-- {
		if r.mu.spare[i].real == need {
			f = r.mu.spare[i]
			r.mu.spare = append(r.mu.spare[:i], r.mu.spare[i+1:]...)
			r.mu.hold()
			r.mu.recycled++
			return f, nil, nil
		}
	}
	discard, err = r.charge(need, 1)
	if err == nil {
		r.mu.hold()
	}
	return nil, discard, err
}

// release takes back the room that reserve set aside.
func (r *ram) release(real int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.letGo(true)
	r.mu.free(real)
}

// charge counts bytes as used, for so many more files, those of spare files that must
// go taken off. r.mu is held; the files are to be closed without it.
func (r *ram) charge(need int64, files int) (discard []*ramFile, err error) {
	fits := func() bool {
		return r.mu.fits(need, r.budget.Load()) && (files == 0 || r.files()+files <= r.maxFiles)
	}
	for !fits() && len(r.mu.spare) > 0 {
		discard = append(discard, r.oldest())
	}
	switch {
	case fits():
		r.mu.take(need)
		return discard, nil
	case r.mu.fits(need, r.budget.Load()):
		return discard, errMappings
	}
	return discard, errNoRoom
}

// files is the number of files with a descriptor and a mapping. r.mu is held.
func (r *ram) files() int {
	return r.mu.open() + len(r.mu.spare) + len(r.mu.dying) + len(r.mu.looking)
}

// oldest takes the first of the spare files. r.mu is held.
func (r *ram) oldest() *ramFile {
	f := r.mu.spare[0]
	r.mu.spare = r.mu.spare[1:]
	r.mu.free(f.real)
	return f
}

// closeSpare closes a spare file, if there is one, not for its memory but because
// another file may lack its descriptor or its mapping.
func (r *ram) closeSpare() bool {
	r.mu.Lock()
	if len(r.mu.spare) == 0 {
		r.mu.Unlock()
		return false
	}
	f := r.oldest()
	r.mu.Unlock()
	f.close()
	return true
}

// retire takes a file back, whose backing id is gone, so that it cannot be opened
// any more. It is spare at once if no rank maps it.
func (r *ram) retire(f *ramFile) {
	if free := f.fd >= 0 && disks.Unmapped(f.fd); r.retired(f, free) {
		f.close()
	}
}

// retired accounts for a file that is retired, and reports whether it is to be
// closed: there are plenty.
func (r *ram) retired(f *ramFile, free bool) (enough bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.letGo(f.fd >= 0)
	switch {
	case f.fd < 0: // it could not be opened again, and is gone with the backing id
		r.mu.free(f.real)
	case free && r.files() > r.idleFiles:
		r.mu.free(f.real)
		return true
	case free:
		r.mu.spare = append(r.mu.spare, f)
	default:
		r.mu.dying = append(r.mu.dying, f)
	}
	return false
}

// sweep makes spare the dying files that are no longer mapped, unless another one
// is at it.
func (r *ram) sweep() {
	r.mu.Lock()
	if len(r.mu.looking) > 0 {
		r.mu.Unlock()
		return
	}
	r.mu.looking, r.mu.dying = r.mu.dying, nil
	looking := r.mu.looking
	r.mu.Unlock()
	var spare, still []*ramFile
	for _, f := range looking {
		if disks.Unmapped(f.fd) {
			spare = append(spare, f)
		} else {
			still = append(still, f)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.spare = append(r.mu.spare, spare...)
	r.mu.dying = append(r.mu.dying, still...)
	r.mu.looking = nil
}

// close gives back everything but what ranks still map, which the kernel
// keeps for them.
func (r *ram) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range append(r.mu.spare, r.mu.dying...) {
		r.mu.free(f.real)
		f.close()
	}
	r.mu.spare, r.mu.dying = nil, nil
	err := errors.Join(r.root.Close(), r.dir.Close(), r.slotFile.close())
	if r.mu.held != 0 || r.mu.used != 0 {
		err = errors.Join(err, fmt.Errorf("close ram tier: %d slabs and %d bytes not given back", r.mu.held, r.mu.used))
	}
	return err
}

package cache

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"rankfs/cache/disks"
)

// A ramFile is one unnamed file of the tier with the daemon's mapping of it.
type ramFile struct {
	fd   int    // -1 if it is closed: then the kernel knows it as a backing file
	mem  []byte // length: the file's size; nil if it is not mapped
	size int64
	real int64 // bytes of memory it holds, in whole pages
	file handle
	lock sync.Mutex // while its descriptor or mapping is made anew: several may hold it
}

func (r *ram) create(size int64) (*ramFile, error) {
	fd, err := unix.Openat(int(r.dir.Fd()), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0600)
	if err == nil {
		if err = disks.Affordable(fd); err != nil {
			unix.Close(fd)
		}
	}
	if disks.OutOfFiles(err) {
		// The caller evicts as if memory were full: that frees a descriptor.
		return nil, fmt.Errorf("create ram slab: %w", disks.ErrOutOfFiles)
	}
	if err != nil {
		return nil, fmt.Errorf("create ram slab: %w", err)
	}
	f := &ramFile{fd: fd, size: size, real: pages(size)}
	if err := f.grow(size); err != nil {
		f.close()
		return nil, fmt.Errorf("create ram slab of %d bytes: %w", size, err)
	}
	return f, nil
}

// grow gives a new file its size, its pages and its mapping, all at once: a
// copy into a mapping cannot report a full tmpfs.
//
// The pages come from writing zeros, not from faults. A write gets the largest
// folio that fits, a fault below 2 MiB a single page, and that is what ranks
// feel: a 1 MiB batch is summed through a fresh mapping in 39 us from one
// folio and in 110 us from 256 pages.
func (f *ramFile) grow(size int64) error {
	if size == 0 {
		return nil
	}
	if err := unix.Ftruncate(f.fd, size); err != nil {
		return err
	}
	zeros, err := zeroBytes()
	if err != nil {
		return err
	}
	for at := int64(0); at < size; {
		n, err := unix.Pwrite(f.fd, zeros[:min(size-at, int64(len(zeros)))], at)
		if err != nil {
			return fmt.Errorf("%w: %w", err, errNoRoom)
		}
		at += int64(n)
	}
	return f.mapIt()
}

// mapIt maps a file that has its pages.
func (f *ramFile) mapIt() error {
	mem, err := unix.Mmap(f.fd, 0, int(f.real), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == unix.ENOMEM {
		return errMappings
	}
	if err != nil {
		return err
	}
	f.mem = mem[:f.size]
	if err := unix.Madvise(mem, unix.MADV_POPULATE_WRITE); err != nil {
		return fmt.Errorf("%w: %w", err, errNoRoom)
	}
	return nil
}

// ready has a spare file be one of another size within its last page.
func (f *ramFile) ready(size int64) error {
	if f.size != size {
		if err := f.resize(size); err != nil {
			return err
		}
	}
	if f.mem == nil && size > 0 {
		return f.mapIt()
	}
	return nil
}

// resize changes the size within the last page. Shrinking makes the kernel
// clear the rest of that page, so no old byte shows past the end.
func (f *ramFile) resize(size int64) error {
	if err := unix.Ftruncate(f.fd, size); err != nil {
		return fmt.Errorf("resize ram slab: %w", err)
	}
	f.size = size
	if f.mem != nil {
		f.mem = f.mem[:size]
	}
	return nil
}

// zeroBytes is 2 MiB, a huge page, that are zero and cost no memory.
var zeroBytes = sync.OnceValues(func() ([]byte, error) {
	return unix.Mmap(-1, 0, 2<<20, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
})

func (f *ramFile) close() {
	if f.mem != nil {
		unix.Munmap(f.mem[:cap(f.mem)])
	}
	unix.Close(f.fd)
}

// pages rounds up to whole pages, which is what a file on tmpfs holds.
func pages(size int64) int64 {
	page := int64(unix.Getpagesize())
	return (size + page - 1) / page * page
}

// A handle is what a file without a name or descriptor is opened by again, as long
// as the kernel keeps it for a mapping or as a backing file.
type handle struct {
	kind int32
	id   [12]byte // as tmpfs has it: generation and inode number
}

// detach closes the descriptor and the mapping of a file that the kernel knows as
// a backing file and that has no other user.
func (r *ram) detach(f *ramFile) bool {
	if !r.handles || !f.identify() {
		return false
	}
	f.close()
	f.fd, f.mem = -1, nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.closed++
	return true
}

// identify notes the handle of a file.
func (f *ramFile) identify() bool {
	h, _, err := unix.NameToHandleAt(f.fd, "", unix.AT_EMPTY_PATH)
	if err != nil || h.Size() != len(f.file.id) {
		return false
	}
	f.file.kind = h.Type()
	copy(f.file.id[:], h.Bytes())
	return true
}

// canReopen finds out whether files can be opened by their handles: not everywhere
// may root do that.
func (r *ram) canReopen() bool {
	f, err := r.create(1)
	if err != nil {
		return false
	}
	defer f.close()
	if !f.identify() {
		return false
	}
	fd, err := r.reopen(f)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// attach gives a file its descriptor again.
func (r *ram) attach(f *ramFile) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.fd >= 0 {
		return nil
	}
	fd, err := r.reopen(f)
	if err != nil {
		return err
	}
	f.fd = fd
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.closed--
	return nil
}

func (r *ram) reopen(f *ramFile) (fd int, err error) {
	fd, err = unix.OpenByHandleAt(int(r.root.Fd()), unix.NewFileHandle(f.file.kind, f.file.id[:]), unix.O_RDWR|unix.O_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open ram slab again by its handle: %w", err)
	}
	if err := disks.Affordable(fd); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// bytes are those of a file, which is mapped if it was not.
func (r *ram) bytes(f *ramFile) ([]byte, error) {
	if err := r.attach(f); err != nil {
		return nil, err
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.mem == nil && f.size > 0 {
		if err := f.mapIt(); err != nil {
			return nil, fmt.Errorf("map ram slab: %w", err)
		}
	}
	return f.mem, nil
}

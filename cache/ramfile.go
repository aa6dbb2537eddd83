package cache

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"rankfs/cache/disks"
	"rankfs/meta"
)

// errNoRoom: the tier cannot take a slab of that size now. It wraps meta.ErrNoSpace.
var errNoRoom = disks.ErrNoRoom

// errMappings is errNoRoom for the lack of nothing but mappings.
var errMappings = meta.Worded(errNoRoom, "as many mappings as vm.max_map_count allows a process")

// A ramFile is one unnamed file of the tier with the daemon's mapping of it.
// Descriptor and mapping are made anew under its lock, as several may hold it, and taken
// away when none does.
type ramFile struct {
	fd   int    // -1 if it is closed: then the kernel knows it as a backing file
	mem  []byte // length: the file's size; nil if it is not mapped
	size int64
	real int64 // bytes of memory it holds, in whole pages
	file handle
	lock sync.Mutex // several may hold the file
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
			return meta.Worded(errNoRoom, "%w", err)
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
		return meta.Worded(errNoRoom, "%w", err)
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

// A handle opens a file again that has neither name nor descriptor, as long
// as the kernel keeps it for a mapping or as a backing file.
type handle struct {
	kind int32
	id   [12]byte // as tmpfs has it: generation and inode number
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

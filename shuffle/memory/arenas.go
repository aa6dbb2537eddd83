package memory

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Arenas are files without a name in a directory that are mapped: memory of the job, which its
// bound counts.
type Arenas struct {
	Dir string // in a file system in memory
	all []arena
}

type arena struct {
	file  *os.File
	bytes []byte
}

// More is so much more memory.
func (a *Arenas) More(bytes int64) ([]byte, error) {
	fd, err := unix.Open(a.Dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0400)
	if err != nil {
		return nil, fmt.Errorf("make a file without a name in %s: %w", a.Dir, err)
	}
	one := arena{file: os.NewFile(uintptr(fd), "divided")}
	if bytes > 0 {
		for err = unix.EINTR; err == unix.EINTR; { // any signal of the process ends it
			err = unix.Fallocate(fd, 0, 0, bytes)
		}
	}
	if err == nil {
		one.bytes, err = mapBytes(one.file, bytes, unix.PROT_READ|unix.PROT_WRITE)
	}
	if err != nil {
		return nil, errors.Join(err, one.file.Close())
	}
	a.all = append(a.all, one)
	return one.bytes, nil
}

// Free gives back memory that More gave.
func (a *Arenas) Free(bytes []byte) {
	for i, one := range a.all {
		if len(bytes) > 0 && unsafe.SliceData(one.bytes) == unsafe.SliceData(bytes) {
			one.free()
			a.all = slices.Delete(a.all, i, i+1)
			return
		}
	}
}

// Last is the file of the memory that was given last, which stays from then on.
func (a *Arenas) Last() *os.File {
	one := &a.all[len(a.all)-1]
	file := one.file
	one.file = nil
	return file
}

// FreeAll gives back all of it that does not stay.
func (a *Arenas) FreeAll() {
	for _, one := range a.all {
		one.free()
	}
}

func (a *arena) free() {
	Unmap(a.bytes)
	if a.file != nil {
		a.file.Close()
	}
}

// MapFile maps a file of that size to be read; none of it if it is empty.
func MapFile(file *os.File, size int64) ([]byte, error) {
	return mapBytes(file, size, unix.PROT_READ)
}

func mapBytes(file *os.File, size int64, how int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	b, err := unix.Mmap(int(file.Fd()), 0, int(size), how, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a file of %d bytes: %w", size, err)
	}
	return b, nil
}

// Unmap gives back what was mapped, if anything was.
func Unmap(b []byte) {
	if b != nil {
		unix.Munmap(b)
	}
}

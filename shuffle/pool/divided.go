package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/fault"
	"rankfs/meta/state"
	"rankfs/shuffle/pieces"
	"rankfs/shuffle/record"
	"rankfs/shuffle/turns"
)

// offsets are the offsets that an attempt's writer has given.
func (f *files) offsets(spec meta.Stage, name string, size int64) (pieces.Offsets, error) {
	return pieces.ReadOffsets(f.store().at(name+idx), spec, size)
}

// divides reports whether the pool puts the records of an attempt in order: it has no offsets,
// or they are to be sorted.
func divides(spec meta.Stage, given pieces.Offsets) bool {
	return spec.Records.Kind != meta.NoRecords && (given == nil || record.Spec(spec.Records).Ordered())
}

// divisor is into how many pieces records are divided: parts, or slices.
func divisor(spec meta.Stage) uint64 {
	if spec.Records.Ranges {
		return spec.Slices()
	}
	return spec.Parts
}

// divideInTurn is divide, once it is the turn of the job.
func (s *sealing) divideInTurn(ctx context.Context, g state.PoolStage, given pieces.Offsets) (pieces.Offsets, error) {
	done, err := s.files.work.Take(ctx, turns.PartyOf(g), 1, s.size)
	if err != nil {
		return nil, fmt.Errorf("divide it, which waits for others: %w", err)
	}
	defer done()
	return s.divide(ctx, g.Spec, given)
}

// divide has another file committed, with the records of the one that was written by part; or
// if these stand so already, that one, and what comes after them. It is made in the job's
// memory, and so is the index by which records are sorted; what it is depends on the bytes
// that were written and on the spec alone.
func (s *sealing) divide(ctx context.Context, spec meta.Stage, given pieces.Offsets) (pieces.Offsets, error) {
	used := arenas{dir: s.files.Dir}
	from, err := mapWhole(s.source, s.size, unix.PROT_READ)
	if err != nil {
		return nil, err
	}
	defer unmap(from)
	defer used.freeAll()
	var is record.Divided
	err = fault.Guard(func() (err error) {
		is, err = record.Spec(spec.Records).Divide(ctx, from, given, divisor(spec), &used)
		return err
	})
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EFAULT): // a hole of what was written takes memory when it is read
		return nil, meta.Worded(meta.ErrNoSpace, "there is no room to divide it, which takes as much memory of the pool again as it has bytes, and 16 bytes for each record that is sorted or combined: mount with a larger --pool-ram, remove jobs, or write smaller maps: %w", err)
	case err != nil:
		return nil, err
	}
	switch n := int64(len(is.Bytes)); {
	case !is.AsWritten:
		s.file, s.size = used.last(), n
	case n > 0:
		s.rest, s.after, s.size, s.sums = used.last(), n, s.size+n, is.Sums
	}
	return is.Offsets, nil
}

// arenas are files without a name in a directory that are mapped: memory of the job, which its
// bound counts.
type arenas struct {
	dir string
	all []arena
}

type arena struct {
	file  *os.File
	bytes []byte
}

// More is so much more memory.
func (a *arenas) More(bytes int64) ([]byte, error) {
	fd, err := unix.Open(a.dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0400)
	if err != nil {
		return nil, fmt.Errorf("make a file without a name in %s: %w", a.dir, err)
	}
	one := arena{file: os.NewFile(uintptr(fd), "divided")}
	if bytes > 0 {
		for err = unix.EINTR; err == unix.EINTR; { // any signal of the process ends it
			err = unix.Fallocate(fd, 0, 0, bytes)
		}
	}
	if err == nil {
		one.bytes, err = mapWhole(one.file, bytes, unix.PROT_READ|unix.PROT_WRITE)
	}
	if err != nil {
		return nil, errors.Join(err, one.file.Close())
	}
	a.all = append(a.all, one)
	return one.bytes, nil
}

// Free gives back memory that More gave.
func (a *arenas) Free(bytes []byte) {
	for i, one := range a.all {
		if len(bytes) > 0 && unsafe.SliceData(one.bytes) == unsafe.SliceData(bytes) {
			one.free()
			a.all = slices.Delete(a.all, i, i+1)
			return
		}
	}
}

// last is the file of the memory that was given last, which stays from then on.
func (a *arenas) last() *os.File {
	one := &a.all[len(a.all)-1]
	file := one.file
	one.file = nil
	return file
}

// freeAll gives back all of it that does not stay.
func (a *arenas) freeAll() {
	for _, one := range a.all {
		one.free()
	}
}

func (a *arena) free() {
	unmap(a.bytes)
	if a.file != nil {
		a.file.Close()
	}
}

// mapWhole maps a file of that size; none of it if it is empty.
func mapWhole(file *os.File, size int64, how int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	b, err := unix.Mmap(int(file.Fd()), 0, int(size), how, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a file of %d bytes: %w", size, err)
	}
	return b, nil
}

func unmap(b []byte) {
	if b != nil {
		unix.Munmap(b)
	}
}

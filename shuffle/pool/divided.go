package pool

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/fault"
	"rankfs/meta/state"
	"rankfs/shuffle/record"
)

// offsets are those that an attempt's writer has given.
func (f *files) offsets(spec meta.Stage, name string, size int64) (offsets, error) {
	return readOffsets(f.store().at(name+idx), spec, size)
}

// divides reports whether the pool puts the records of an attempt in order: it has no offsets,
// or they are to be sorted.
func divides(spec meta.Stage, given offsets) bool {
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
func (s *sealing) divideInTurn(ctx context.Context, g state.PoolStage, given offsets) (offsets, error) {
	done, err := s.files.work.take(ctx, partyOf(g), 1, s.size)
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
func (s *sealing) divide(ctx context.Context, spec meta.Stage, given offsets) (offsets, error) {
	var used arenas
	from, err := mapWhole(s.source, s.size, unix.PROT_READ)
	if err != nil {
		return nil, err
	}
	defer unmap(from)
	defer used.free()
	var is record.Divided
	err = fault.Guard(func() (err error) {
		is, err = record.Spec(spec.Records).Divide(ctx, from, given, divisor(spec), func(bytes int64) ([]byte, error) { return used.more(s.files.dir, bytes) })
		return err
	})
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EFAULT): // a hole of what was written takes memory when it is read
		return nil, meta.Worded(meta.ErrNoSpace, "there is no room to divide it, which takes as much memory of the pool again as it has bytes, and 16 bytes for each record that is sorted: mount with a larger --pool-ram, or write smaller maps: %w", err)
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

// arenas are files without a name that are mapped: memory of the job, which its bound counts.
type arenas []arena

type arena struct {
	file  *os.File
	bytes []byte
}

// more is so much more memory in a file system.
func (all *arenas) more(dir string, bytes int64) ([]byte, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0400)
	if err != nil {
		return nil, fmt.Errorf("make a file without a name in %s: %w", dir, err)
	}
	a := arena{file: os.NewFile(uintptr(fd), "divided")}
	if bytes > 0 {
		for err = unix.EINTR; err == unix.EINTR; { // any signal of the process ends it
			err = unix.Fallocate(fd, 0, 0, bytes)
		}
	}
	if err == nil {
		a.bytes, err = mapWhole(a.file, bytes, unix.PROT_READ|unix.PROT_WRITE)
	}
	if err != nil {
		return nil, errors.Join(err, a.file.Close())
	}
	*all = append(*all, a)
	return a.bytes, nil
}

// last is the file of the memory that was given last, which stays from then on.
func (all *arenas) last() *os.File {
	a := &(*all)[len(*all)-1]
	file := a.file
	a.file = nil
	return file
}

// free gives back all of it that does not stay.
func (all *arenas) free() {
	for _, a := range *all {
		unmap(a.bytes)
		if a.file != nil {
			a.file.Close()
		}
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

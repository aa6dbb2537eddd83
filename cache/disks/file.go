package disks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"rankfs/meta/diskdir"
	"rankfs/meta/slowdisk"
)

// A File is a file of a directory of the tier: a slab, or what is not one. It has all of its blocks
// before its first byte. What a power failure leaves of one that is not durable shows at its first
// hash.
//
// No lock guards it. The exported methods, but for Bytes, Size and Close, are watched, and fail at
// once if the directory is not read now, so that what a silent disk does late is over before any
// other call. They may be called concurrently, but for Seal and Close.
type File struct {
	health *health
	file   *diskdir.File
}

// window bytes are read at a time to be hashed: they stay in the processor's
// cache from the copy to the hash.
const window = 256 << 10

// feed hashes bytes of a file, and copies them to mem unless that is nil.
func feed(w *slowdisk.Work, h *xxhash.Digest, f *os.File, off, size int64, mem []byte) error {
	scratch, err := unix.Mmap(-1, 0, window, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("%w: %w", err, unix.ENFILE)
	}
	defer unix.Munmap(scratch)
	from := w.File(f)
	for at := int64(0); at < size; {
		n, err := from.ReadAt(scratch[:min(window, size-at)], off+at)
		if n == 0 || err != nil && err != io.EOF {
			return fmt.Errorf("read at byte %d: %w", off+at, err)
		}
		_, _ = h.Write(scratch[:n])
		if mem != nil {
			if err := w.Give(mem[at:], scratch[:n]); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	return nil
}

// ask is watch for what is not a slab, unless the directory is not read now.
func ask[T any](h *health, work func(*slowdisk.Work) (T, error), undo func(T)) (T, error) {
	if err := h.Unreadable(); err != nil {
		var none T
		return none, fmt.Errorf("nvme directory %s: %w: %w", h.Dir, errUnreadable, err)
	}
	v, err := watch(h, work, undo)
	if errors.Is(err, errStuck) { // which is no lack of room to a file that has its own
		err = fmt.Errorf("nvme directory %s: %w", h.Dir, errStuck)
	}
	return v, err
}

// do is ask for what returns nothing.
func (f *File) do(work func(*slowdisk.Work) error) error {
	_, err := ask(f.health, slowdisk.Plain(work), nil)
	return err
}

// Bytes is the file itself, for reads of what has been hashed. These are not watched, as
// ranks' own reads of slabs are not.
func (f *File) Bytes() *os.File { return f.file.Bytes }

// Size is the length of the file.
func (f *File) Size() (size int64, err error) {
	info, err := f.file.Bytes.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// WriteAt writes bytes. When it has returned the caller may change b; after an error what is written
// is not known.
func (f *File) WriteAt(b []byte, off int64) (int, error) {
	if err := f.do(func(w *slowdisk.Work) error { return f.file.WriteAt(w, b, off) }); err != nil {
		return 0, err
	}
	return len(b), nil
}

// ReadAt reads all of b.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	err := f.do(func(w *slowdisk.Work) error { return feed(w, xxhash.New(), f.file.Bytes, off, int64(len(b)), b) })
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// Sum hashes bytes of the file.
func (f *File) Sum(off, size int64) (uint64, error) {
	sum := xxhash.New()
	if err := f.do(func(w *slowdisk.Work) error { return feed(w, sum, f.file.Bytes, off, size, nil) }); err != nil {
		return 0, err
	}
	return sum.Sum64(), nil
}

// Sync has the disk take what was written.
func (f *File) Sync() error { return f.do(f.file.Sync) }

// Seal gives the file its name in its folder. A durable one lasts when it has returned.
func (f *File) Seal(name string) error {
	return f.do(func(w *slowdisk.Work) error {
		f.file.Name = filepath.Join(filepath.Dir(f.file.Unfinished), name)
		return diskdir.Seal(w, f.file)
	})
}

// Close closes the file. It need not be sealed.
func (f *File) Close() error { return f.file.Bytes.Close() }

package disks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"rankfs/meta/durable"
	"rankfs/meta/slowdisk"
)

// A File is one that is made in a directory and does not change after that: a slab, or
// what is not one. What it takes is in the budget before it is there.
//
//   - It is made with all of its blocks, under a name that says that it is unfinished.
//   - seal gives it the name by which the next daemon finds it. A durable file is on the
//     disk by then, with its name; what a power failure leaves of another shows at its
//     first hash.
//   - One that is not sealed is discarded, or gone on with by the next daemon, or swept
//     by it, as the kind of file has it.
//
// No lock guards it. The exported methods are watched, and fail at once if the directory is not
// read now, so that what a silent disk does late is over before any other call.
// They may be called concurrently, but for Seal and Close.
type File struct {
	health  *health
	place   *place
	name    string // in the place
	file    *os.File
	durable bool
}

// window bytes are read at a time to be hashed: they stay in the processor's
// cache from the copy to the hash.
const window = 256 << 10

// create makes a file, or opens one that is not finished yet, with the blocks of so many
// bytes. If its disk has not got them the file is returned with the error.
func (p *place) create(h *health, name string, flag int, size int64, durable bool) (*File, error) {
	f, err := p.Root.OpenFile(name, os.O_RDWR|os.O_CREATE|flag, 0600)
	if err != nil {
		return nil, err
	}
	if size > 0 {
		err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	return &File{h, p, name, f, durable}, err
}

// write writes bytes, so many at a time, for as long as the caller waits: then they may change.
func (f *File) write(w *slowdisk.Work, b []byte, off int64) error {
	// A write gets the largest folio that fits, and ranks feel that.
	const most = 4 << 20
	to := w.File(f.file)
	for at := 0; at < len(b); at += most {
		if _, err := to.WriteAt(b[at:min(at+most, len(b))], off+int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// seal gives the file its name.
func (f *File) seal(name string) error {
	if f.durable {
		if err := f.file.Sync(); err != nil {
			return err
		}
	}
	if err := f.place.Root.Rename(f.name, name); err != nil {
		return err
	}
	f.name = name
	if f.durable {
		return durable.SyncIn(f.place.Root, filepath.Dir(name))
	}
	return nil
}

// discard removes the file.
func (f *File) discard() error { return errors.Join(f.place.Root.Remove(f.name), f.file.Close()) }

// feed hashes bytes of a file, and copies them to mem if that is anything.
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
func (f *File) Bytes() *os.File { return f.file }

// Size is the length of the file.
func (f *File) Size() (size int64, err error) {
	info, err := f.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// WriteAt writes bytes. The disk of a durable file begins to take many of them at once:
// a last sync then finds little to do. When it has returned the caller may change b; after an
// error what is written is not known.
func (f *File) WriteAt(b []byte, off int64) (int, error) {
	err := f.do(func(w *slowdisk.Work) error {
		if err := f.write(w, b, off); err != nil {
			return err
		}
		if !f.durable || len(b) < window {
			return nil
		}
		return w.Do(func() error {
			_ = unix.SyncFileRange(int(f.file.Fd()), off, int64(len(b)), unix.SYNC_FILE_RANGE_WRITE)
			return nil
		})
	})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// ReadAt reads all of b.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	err := f.do(func(w *slowdisk.Work) error { return feed(w, xxhash.New(), f.file, off, int64(len(b)), b) })
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// Sum hashes bytes of the file.
func (f *File) Sum(off, size int64) (uint64, error) {
	sum := xxhash.New()
	if err := f.do(func(w *slowdisk.Work) error { return feed(w, sum, f.file, off, size, nil) }); err != nil {
		return 0, err
	}
	return sum.Sum64(), nil
}

// Sync has the disk take what was written.
func (f *File) Sync() error {
	return f.do(func(w *slowdisk.Work) error { return w.File(f.file).Sync() })
}

// Seal gives the file its name in its folder. A durable one lasts when it has returned.
func (f *File) Seal(name string) error {
	return f.do(func(w *slowdisk.Work) error {
		return w.Do(func() error { return f.seal(filepath.Join(filepath.Dir(f.name), name)) })
	})
}

// Close closes the file. It need not be sealed.
func (f *File) Close() error { return f.file.Close() }

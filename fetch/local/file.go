package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"rankfs/fetch/index"
	"rankfs/meta"
)

// A File is a source whose records are all in one file.
//
// Once attached it is read through a mapping: a copy out of one ran at 15
// GB/s where preads of a megabyte ran at 6.
type File struct {
	path string
	form form

	// Set by Attach.
	file    *os.File
	version stamp
	data    []byte // the mapping, nil if the file is empty

	touched atomic.Int64 // of data, since its page tables were dropped
}

// openFile finds out early whether path can be read at all. It keeps nothing
// open: Scan and Attach each look at the file as it is then.
func openFile(path string, form form) (*File, error) {
	s := &File{path: path, form: form}
	f, _, err := s.open()
	if err != nil {
		return nil, err
	}
	return s, f.Close()
}

func (s *File) open() (*os.File, stamp, error) {
	// A fifo at the path would hold up an open that may block.
	f, err := os.OpenFile(s.path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, stamp{}, explain(err)
	}
	st, err := statFile(f)
	if err == nil && !st.isRegular() {
		err = fmt.Errorf("source %q %w: it is no regular file", s.path, meta.ErrInvalid)
	}
	if err != nil {
		f.Close()
		return nil, stamp{}, err
	}
	return f, st, nil
}

func (s *File) fingerprint(st stamp) string {
	return fmt.Sprintf("%s,dev=%x,ino=%x,size=%d,mtime=%d,ctime=%d", s.form.name, st.dev, st.ino, st.size, st.mtime, st.ctime)
}

// Fingerprint implements fetch.Source.
func (s *File) Fingerprint(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	st, err := statPath(s.path)
	if err != nil {
		return "", s.gone(err)
	}
	return s.fingerprint(st), nil
}

// gone is err, marked as stale if it says that the file is not there.
func (s *File) gone(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return stale(s.path, "it is gone")
	}
	return fmt.Errorf("source %q: %w", s.path, err)
}

// Scan implements fetch.Source.
func (s *File) Scan(ctx context.Context, b *index.Builder, done func(bytes, total int64)) (string, error) {
	f, st, err := s.open()
	if err != nil {
		return "", s.gone(err)
	}
	defer f.Close()
	if err := settle(ctx, st.ctime); err != nil {
		return "", err
	}
	add := &adder{b: b, done: func(bytes int64) { done(bytes, st.size) }}
	add.file = b.AddFile(index.File{Path: s.path, Size: st.size, Stamp: s.fingerprint(st)})
	err = s.form.split(ctx, f, st.size, add)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("scan %q: %w", s.path, err)
	}
	if err := s.compare(f, st); err != nil {
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("scan %q: %w", s.path, err)
	}
	done(st.size, st.size)
	return s.fingerprint(st), nil
}

// compare reports whether both f and what the path names are the version.
func (s *File) compare(f *os.File, version stamp) error {
	if err := s.unchanged(f, version); err != nil {
		return err
	}
	now, err := statPath(s.path)
	if err != nil {
		return s.gone(err)
	}
	if now != version {
		return stale(s.path, version.difference(now))
	}
	return nil
}

func (s *File) unchanged(f *os.File, version stamp) error {
	now, err := statFile(f)
	if err != nil {
		return fmt.Errorf("source %q: %w", s.path, err)
	}
	if now != version {
		return stale(s.path, version.difference(now))
	}
	return nil
}

// Attach implements fetch.Source.
func (s *File) Attach(ctx context.Context, x *index.Index, fingerprint string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, st, err := s.open()
	if err != nil {
		return s.gone(err)
	}
	data, err := s.mapVersion(f, st, x, fingerprint)
	if err != nil {
		f.Close()
		return err
	}
	s.file, s.version, s.data = f, st, data
	return nil
}

func (s *File) mapVersion(f *os.File, st stamp, x *index.Index, fingerprint string) ([]byte, error) {
	if s.fingerprint(st) != fingerprint {
		return nil, stale(s.path, "its size, times or place on the disk are others")
	}
	if x.Files() != 1 || x.FileSize(0) != st.size {
		return nil, fmt.Errorf("index of %q %w: it is that of another source", s.path, meta.ErrCorrupt)
	}
	if st.size == 0 {
		return nil, nil
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(st.size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %q: %w", s.path, os.NewSyscallError("mmap", err))
	}
	return data, nil
}

// Check implements fetch.Source: the file and its path have not changed.
func (s *File) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.compare(s.file, s.version)
}

// Read implements fetch.Source. It faults if the file is cut short under it.
func (s *File) Read(ctx context.Context, extents []index.Extent, dst []byte) error {
	if err := s.Check(ctx); err != nil {
		return err
	}
	for len(extents) > 0 {
		e := extents[0]
		for extents = extents[1:]; len(extents) > 0 && extents[0].Off == e.Off+e.Len; extents = extents[1:] {
			e.Len += extents[0].Len // records side by side are one copy
		}
		if err := s.copy(ctx, dst[:e.Len], e.Off); err != nil {
			return err
		}
		dst = dst[e.Len:]
	}
	return s.unchanged(s.file, s.version)
}

const (
	// pieceBytes is what is copied before ctx is looked at again: about a
	// millisecond's worth.
	pieceBytes = 8 << 20

	// touchedBytes is what may be resident through a mapping: its page
	// tables are dropped after so much, the page cache stays as it is.
	touchedBytes = 64 << 20

	// faultBytes is what one fault makes resident besides the byte asked
	// for: the kernel maps the pages around it too, if it has them.
	faultBytes = 64 << 10

	// aheadBytes is the least for which asking the kernel to begin reading
	// costs less than its own guess, which is half that.
	aheadBytes = 256 << 10
)

func (s *File) copy(ctx context.Context, dst []byte, off int64) error {
	for len(dst) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(int64(len(dst)), pieceBytes)
		if n >= aheadBytes {
			page := off &^ int64(os.Getpagesize()-1)
			unix.Madvise(s.data[page:off+n], unix.MADV_WILLNEED) // a hint
		}
		copy(dst, s.data[off:off+n])
		dst, off = dst[n:], off+n
		s.touch(n)
	}
	return nil
}

func (s *File) touch(n int64) {
	if now := s.touched.Add(n + faultBytes); now >= touchedBytes && s.touched.CompareAndSwap(now, 0) {
		unix.Madvise(s.data, unix.MADV_DONTNEED) // a hint
	}
}

// Close implements fetch.Source.
func (s *File) Close() error {
	var err error
	if s.data != nil {
		err = os.NewSyscallError("munmap", unix.Munmap(s.data))
	}
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	s.file, s.data = nil, nil
	return err
}

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"golang.org/x/sys/unix"

	"rankfs/fetch/index"
	"rankfs/fetch/warm"
	"rankfs/meta"
)

// A File is a source whose records are all in one file.
type File struct {
	path    string
	form    form
	version *version // set by Attach
	warm    *warm.File
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
	if err == nil && st.isDir() {
		err = fmt.Errorf("source %q %w: it is a directory, and lines and fixed:N are of one file; name a file in it, or add --as files to have each file of it as a record",
			s.path, meta.ErrInvalid)
	}
	if err == nil && !st.isRegular() {
		err = fmt.Errorf("source %q %w: it is no regular file; write what it gives to one, and name that", s.path, meta.ErrInvalid)
	}
	if err != nil {
		f.Close()
		return nil, stamp{}, err
	}
	return f, st, nil
}

// fingerprint leaves out the number of the device, which may change when a machine
// starts anew.
func (s *File) fingerprint(st stamp) string {
	return fmt.Sprintf("%s,ino=%x,size=%d,mtime=%d,ctime=%d", s.form.name, st.ino, st.size, st.mtime, st.ctime)
}

// withDevice is the number in fingerprints that were made before it was left out.
var withDevice = regexp.MustCompile(`,dev=[0-9a-f]+,ino=`)

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
		return gone(s.path)
	}
	return fmt.Errorf("source %q: %w", s.path, err)
}

// OpenLines opens a file whose records are its lines, each with the line feed
// that ends it.
func OpenLines(path string) (*File, error) { return openFile(path, lines()) }

// OpenFixed opens a file whose records have n bytes each. A shorter rest at the end
// of the file belongs to no record; a note says so.
func OpenFixed(path string, n int64) (*File, error) {
	const maxRecord = 1<<48 - 1
	if n < 1 || n > maxRecord {
		return nil, meta.Worded(meta.ErrInvalid, "records cannot have %d bytes: use 1 to %d", n, int64(maxRecord))
	}
	return openFile(path, fixed(n))
}

// OpenWhole opens a file that is one record.
func OpenWhole(path string) (*File, error) { return openFile(path, whole()) }

// Scan implements fetch.Source.
func (s *File) Scan(ctx context.Context, b *index.Builder, done func(bytes, total int64)) (string, error) {
	f, st, err := s.open()
	if err != nil {
		return "", s.gone(err)
	}
	defer f.Close()
	if err := awaitStamp(ctx, st.ctime); err != nil {
		return "", err
	}
	add := &adder{b: b, done: func(bytes int64) { done(bytes, st.size) }}
	add.file = b.AddFile(index.File{Path: s.path, Size: st.size, Stamp: s.fingerprint(st)})
	err = s.form.split(ctx, f, st.size, add)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("scan %q: %w", s.path, err)
	}
	if err := s.compare(&version{s.path, f, st}); err != nil {
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("scan %q: %w", s.path, err)
	}
	done(st.size, st.size)
	return s.fingerprint(st), nil
}

// compare returns a stale error if the open file, or the file that the path names
// now, is not the version.
func (s *File) compare(v *version) error {
	now, err := statPath(s.path)
	if err != nil {
		return s.gone(err)
	}
	if err := v.check(); err != nil {
		return err
	}
	if now != v.stamp {
		return stale(s.path, v.stamp.difference(now))
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
	if err := s.fits(st, x, fingerprint); err != nil {
		f.Close()
		return err
	}
	s.version, s.warm = &version{s.path, f, st}, warm.New(int(f.Fd()), st.size)
	return nil
}

func (s *File) fits(st stamp, x *index.Index, fingerprint string) error {
	if s.fingerprint(st) != withDevice.ReplaceAllString(fingerprint, ",ino=") {
		return stale(s.path, "its size, times or place on the disk are others")
	}
	if x.Files() != 1 || x.FileSize(0) != st.size {
		return fmt.Errorf("index of %q %w: it is that of another source", s.path, meta.ErrCorrupt)
	}
	return nil
}

// Check implements fetch.Source: the file and its path have not changed.
func (s *File) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.compare(s.version)
}

// Read implements fetch.Source.
func (s *File) Read(ctx context.Context, extents []index.Extent, dst []byte) error {
	if err := s.Check(ctx); err != nil {
		return err
	}
	r := s.warm.Begin()
	defer r.Done()
	return s.version.read(ctx, extents, dst, r.Data)
}

// Close implements fetch.Source.
func (s *File) Close() error {
	if s.version == nil {
		return nil
	}
	s.warm.Close()
	err := s.version.file.Close()
	s.version = nil
	return err
}

package openmaps

import (
	"cmp"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/shuffle/pieces"
)

// A Piece is what an open map has of a part, or of some that follow each other: their rows, and where
// the first begins.
type Piece struct {
	*Map
	Rows  pieces.Table
	Begin int64
}

// Length is how many bytes it has.
func (f Piece) Length() int64 { return f.Rows.Length(f.Begin) }

// Expect has the kernel bring from a disk what will be read of a map of that size, and what comes after that if
// parts are read in order.
func (f Piece) Expect(size int64) {
	if !f.onDisk {
		return
	}
	if from, to := f.ahead.next(f.Begin, f.Begin+f.Length(), size); from < to {
		unix.Fadvise(int(f.file.Fd()), from, to-from, unix.FADV_WILLNEED)
	}
}

// Read reads all of the piece into dst, which is as long, and checks it.
func (f Piece) Read(dst []byte) error {
	if n := f.Length(); n != int64(len(dst)) {
		return fmt.Errorf("it has %d bytes, not %d: %w", n, len(dst), meta.ErrCorrupt)
	}
	if len(dst) > pieces.BufferBytes {
		return f.readLong(dst)
	}
	switch _, err := f.ReadAt(dst, f.Begin); {
	case err != nil && err != io.EOF:
		return err
	case err != nil || !f.Rows.Match(dst, f.Begin):
		return fmt.Errorf("it has other bytes than were committed: %w", meta.ErrCorrupt)
	}
	return nil
}

// readLong is read of what is summed while it is in the processor's cache.
func (f Piece) readLong(dst []byte) error {
	sums := f.Rows.Check(nil, f.Begin)
	for at := 0; at < len(dst); at += pieces.BufferBytes / 2 {
		b := dst[at:min(at+pieces.BufferBytes/2, len(dst))]
		if _, err := f.ReadAt(b, f.Begin+int64(at)); err == io.EOF {
			return fmt.Errorf("it has other bytes than were committed: %w", meta.ErrCorrupt)
		} else if err != nil {
			return err
		}
		if err := sums.Add(b); err != nil {
			return err
		}
	}
	return cmp.Or(sums.Add(nil), sums.Ended())
}

// ReadSome reads some bytes of the piece as they are.
func (f Piece) ReadSome(off int64, dst []byte) error {
	_, err := io.ReadFull(io.NewSectionReader(f, f.Begin+off, int64(len(dst))), dst)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("file of a map %w: it has become shorter", meta.ErrCorrupt)
	}
	return err
}

// InMemory is the piece where it is mapped, if it is right.
func (f Piece) InMemory() (b []byte) {
	is := f.bytes(f.Begin, f.Begin+f.Length())
	if is == nil {
		return nil
	}
	_ = f.file.guard(func() error {
		if f.Rows.Match(is, f.Begin) {
			b = is
		}
		return nil
	})
	return b
}

// Checked reads the pieces, and fails at the end of one that is not right.
func (f Piece) Checked() *pieces.Reader {
	return f.Rows.Check(io.NewSectionReader(f, f.Begin, f.Length()), f.Begin)
}

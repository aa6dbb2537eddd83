package peers

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/wire"
)

// A stream writes an answer that tells its size to w.
type stream struct {
	w     io.Writer
	limit uint64
	buf   []byte
	p     []byte // of buf, to be written next
	left  uint64
	known bool // left was told
}

func newStream(w io.Writer, limit uint64) *stream {
	return &stream{w: w, limit: limit, buf: make([]byte, 64<<10)}
}

func (s *stream) Size(n uint64) error {
	if s.known || n > s.limit {
		return fmt.Errorf("file of %d bytes %w: more than %d are never taken", n, meta.ErrInvalid, s.limit)
	}
	s.left, s.known = n, true
	return nil
}

func (s *stream) Room(n int) ([]byte, error) {
	if uint64(n) > s.left {
		return nil, wire.ErrLong
	}
	s.p = s.buf[:min(n, len(s.buf))]
	return s.p, nil
}

func (s *stream) Filled() error {
	s.left -= uint64(len(s.p))
	_, err := s.w.Write(s.p)
	return full(err)
}

func (s *stream) Whole() error {
	if !s.known || s.left > 0 {
		return wire.ErrShort
	}
	return nil
}

// A download puts an answer into a file that gets its name when it is all
// there and has the hash that was asked for.
type download struct {
	*stream
	file *os.File
	path string
	want ID
	sum  hash.Hash
}

func newDownload(path string, want ID, limit uint64) (*download, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, full(err)
	}
	sum := sha256.New()
	return &download{stream: newStream(io.MultiWriter(sum, f), limit), file: f, path: path, want: want, sum: sum}, nil
}

func (d *download) Whole() error {
	if err := d.stream.Whole(); err != nil {
		return err
	}
	if [32]byte(d.sum.Sum(nil)) != d.want {
		return fmt.Errorf("file %x %w: what came has another hash", d.want[:8], meta.ErrCorrupt)
	}
	return nil
}

// finish gives the file its name, or takes it away after an error.
func (d *download) finish(err error) error {
	if err == nil {
		err = full(errors.Join(d.file.Chmod(0o644), d.file.Sync()))
	}
	err = errors.Join(err, d.file.Close())
	if err == nil {
		err = os.Rename(d.file.Name(), d.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(d.file.Name()))
	}
	return nil
}

func full(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %w", meta.ErrNoSpace, err)
	}
	return err
}

package peers

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

var (
	errLong  = fmt.Errorf("answer %w: it is longer than what was asked for", meta.ErrCorrupt)
	errShort = fmt.Errorf("answer %w: it is shorter than what was asked for", meta.ErrCorrupt)
)

// A scatter puts an answer into pieces of memory, in their order.
type scatter struct {
	parts [][]byte
	at    int // in the first of them
}

func (s *scatter) size(uint64) error {
	return fmt.Errorf("answer %w: a file, where records were asked for", meta.ErrCorrupt)
}

func (s *scatter) room(n int) ([]byte, error) {
	s.skip()
	if len(s.parts) == 0 {
		return nil, errLong
	}
	p := s.parts[0][s.at:]
	p = p[:min(n, len(p))]
	s.at += len(p)
	return p, nil
}

func (s *scatter) filled() error { return nil }

func (s *scatter) whole() error {
	if s.skip(); len(s.parts) > 0 {
		return errShort
	}
	return nil
}

// skip passes over parts that are full.
func (s *scatter) skip() {
	for len(s.parts) > 0 && s.at == len(s.parts[0]) {
		s.parts, s.at = s.parts[1:], 0
	}
}

func length(parts [][]byte) (n uint64) {
	for _, p := range parts {
		n += uint64(len(p))
	}
	return n
}

// A download puts an answer into a file that gets its name when it is all
// there and has the hash that was asked for.
type download struct {
	file  *os.File
	path  string
	limit int64
	want  ID
	sum   hash.Hash
	buf   []byte
	p     []byte // of buf, to be written next
	left  uint64
	known bool // left was told
}

func newDownload(path string, want ID, limit int64) (*download, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, full(err)
	}
	return &download{file: f, path: path, limit: limit, want: want, sum: sha256.New(), buf: make([]byte, 64<<10)}, nil
}

func (d *download) size(n uint64) error {
	if d.known || n > uint64(d.limit) {
		return fmt.Errorf("file of %d bytes %w: more than %d are never taken", n, meta.ErrInvalid, d.limit)
	}
	d.left, d.known = n, true
	return nil
}

func (d *download) room(n int) ([]byte, error) {
	if uint64(n) > d.left {
		return nil, errLong
	}
	d.p = d.buf[:min(n, len(d.buf))]
	return d.p, nil
}

func (d *download) filled() error {
	d.left -= uint64(len(d.p))
	d.sum.Write(d.p)
	_, err := d.file.Write(d.p)
	return full(err)
}

func (d *download) whole() error {
	if !d.known || d.left > 0 {
		return errShort
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

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
	"rankfs/meta/wire"
)

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

func (d *download) Size(n uint64) error {
	if d.known || n > uint64(d.limit) {
		return fmt.Errorf("file of %d bytes %w: more than %d are never taken", n, meta.ErrInvalid, d.limit)
	}
	d.left, d.known = n, true
	return nil
}

func (d *download) Room(n int) ([]byte, error) {
	if uint64(n) > d.left {
		return nil, wire.ErrLong
	}
	d.p = d.buf[:min(n, len(d.buf))]
	return d.p, nil
}

func (d *download) Filled() error {
	d.left -= uint64(len(d.p))
	d.sum.Write(d.p)
	_, err := d.file.Write(d.p)
	return full(err)
}

func (d *download) Whole() error {
	if !d.known || d.left > 0 {
		return wire.ErrShort
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

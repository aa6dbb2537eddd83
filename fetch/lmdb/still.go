package lmdb

import (
	"context"
	"fmt"
	"io"
	"os"

	"rankfs/fetch/index"
)

// A Still is a data file without writers, such as the local copy of a remote one:
// it has one snapshot, and needs neither a lock nor a watch. Its methods but Close
// may be called concurrently.
type Still struct {
	pages  io.ReaderAt
	size   int64
	head   head
	values *reader
}

// OpenStill reads the values from file and all else from pages, which are the
// same bytes. The file stays the caller's, to be closed after the Still is.
func OpenStill(file *os.File, pages io.ReaderAt) (*Still, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	h, err := readHead(pages, file.Name())
	if err != nil {
		return nil, fmt.Errorf("open lmdb: %w", err)
	}
	values := newReader(file, file.Name(), info.Size(), h.page)
	return &Still{pages, info.Size(), h, values}, nil
}

// CheckDatabase returns an error if the file cannot be a source: it is no LMDB,
// or has no database of that name. It reads a few pages.
func CheckDatabase(ctx context.Context, file io.ReaderAt, name string, size int64, db string) error {
	h, err := readHead(file, name)
	if err == nil {
		_, err = newWalker(file, name, size, h).database(ctx, db)
	}
	return err
}

// Scan adds the records of the database of that name to b. In the index they
// are in the file as, wherever this one is.
func (s *Still) Scan(ctx context.Context, db string, b *index.Builder, as index.File, done func(bytes, total int64)) error {
	w := newWalker(s.pages, as.Path, s.size, s.head)
	w.ask = func(at, n int64) { willNeed(s.values.fd, at, at+n) }
	return w.scan(ctx, db, b, as, done)
}

// Read reads values into dst, as Source does.
func (s *Still) Read(ctx context.Context, extents []index.Extent, dst []byte) error {
	return s.values.read(ctx, extents, dst)
}

// Close releases the mapping that reads used.
func (s *Still) Close() { s.values.warm.Close() }

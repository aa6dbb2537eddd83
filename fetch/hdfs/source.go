package hdfs

import (
	"context"
	"errors"
	"fmt"

	"rankfs/fetch/index"
	"rankfs/fetch/splits"
	"rankfs/meta"
)

// A Source is a dataset in HDFS. It implements fetch.Source.
type Source struct {
	clusters  *Clusters
	cluster   *cluster
	authority string
	path      string
	form      form         // none, if it depends on whether the path is a file
	earlier   *index.Index // of an earlier version, for Scan; may be nil
	helpers   []splits.Helper

	// Set by Attach.
	index  *index.Index
	watch  *watch
	where  *whereabouts
	places *places
}

// A form is a way to divide files into records.
type form struct {
	name string
	// scan adds the records of all files.
	scan func(ctx context.Context, s *scan) error
	// find writes what scan has to know of a split, and what check finds nothing wrong
	// with. Both are nil if it has to know nothing.
	find  func(ctx context.Context, s *scan, p split, w *splits.Findings) error
	check func(p split, size int64, found *splits.Findings) error
	// read reads what is wanted of one file.
	read func(ctx context.Context, s *Source, want fileRead) error
	// whole: a file can only be read as a whole, so all that is wanted of it is one read.
	whole bool
	// together: a chunk is whole files.
	together bool
}

// A fileRead has the segments of a read in one file.
type fileRead struct {
	file     uint32
	segments []segment
}

// A segment is extents that follow one another in what is read.
type segment struct {
	extents []index.Extent
	dst     []byte
}

// A scan is the making of an index.
type scan struct {
	source *Source
	files  []file
	splits []split
	total  int64
	kept   *splits.Store
	known  map[int]uint32 // splits whose records the earlier index has: their rows there
	b      *index.Builder

	done func(bytes, total int64) // called by one goroutine
}

// gone is err, marked as stale if it says that there is nothing.
func (s *Source) gone(err error) error {
	if errors.Is(err, meta.ErrNotExist) {
		return fmt.Errorf("%q: %w", s.path, meta.ErrGone)
	}
	return err
}

// Hosts returns the hosts that hold a chunk now, which may be none, or nil if
// they are those of the index. It makes no call.
func (s *Source) Hosts(chunk int) []string { return s.where.hosts(chunk) }

// Check implements fetch.Source. It makes no call: a goroutine asks the namenode now
// and then (watch.go), so opens put no load on it, and go on when it is away.
func (s *Source) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.watch.state()
}

// Close implements fetch.Source.
func (s *Source) Close() error {
	if s.watch != nil {
		s.watch.close()
		s.where.close()
		s.watch = nil
	}
	return nil
}

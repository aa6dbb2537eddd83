package hdfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// A copied is the copy of one version of a file, which a source holds.
//
// Bytes that an earlier process wrote are compared with their sums before they
// are used for the first time, and fetched again where they do not match.
type copied struct {
	Copy
	key    string
	source *Source
	of     file
}

// keyOf names the copy of one version of a file, whatever its cluster is called:
// pool is that of its blocks, which no two clusters share.
func keyOf(pool string, f file) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s", pool, f.path, f.stamp()))
	return hex.EncodeToString(sum[:16])
}

// copying fetches what is missing of the copy of a version of a file.
func (s *Source) copying(f file) func(context.Context, Unfinished) error {
	return func(ctx context.Context, to Unfinished) error {
		if err := s.copyTo(ctx, f, to); err != nil {
			return fmt.Errorf("copy %q to this host: %w", f.path, err)
		}
		return nil
	}
}

func (s *Source) copyTo(ctx context.Context, f file, to Unfinished) error {
	blocks, err := s.cluster.names.Locate(ctx, f.path, 0, f.Size)
	if err != nil {
		return s.gone(err)
	}
	whole := f
	whole.Blocks = blocks
	if err := whole.refuse(); err != nil {
		return err
	}
	if err := to.Begin(ctx); err != nil {
		return err
	}
	runs := cutRuns(blocks.Blocks, f.Size)
	if err := together(ctx, len(runs), func(ctx context.Context, i int) error { return s.copyRun(ctx, f, runs[i], to) }); err != nil {
		return err
	}
	return s.cluster.verify(ctx, index.File{Path: f.path, Stamp: f.stamp()})
}

// A run is granules that one stream fetches, from the first on.
type run struct{ first, end int }

// cutRuns makes a run of each block, rounded to granules, and several of a very
// large one.
func cutRuns(blocks []namenode.Block, size int64) (runs []run) {
	const maxGranules = maxSplit / granule
	at, n := 0, granules(size)
	for _, b := range blocks {
		for end := min(granules(b.Off+b.Size), n); at < end; {
			next := min(end, at+maxGranules)
			runs = append(runs, run{at, next})
			at = next
		}
	}
	if at < n { // the file has shrunk: reading will say so
		runs = append(runs, run{at, n})
	}
	return runs
}

// copyRun copies the granules of a run, except those that an earlier attempt copied.
func (s *Source) copyRun(ctx context.Context, f file, r run, to Unfinished) error {
	for ; r.first < r.end; r.first++ {
		match, err := to.Match(r.first)
		if err != nil {
			return err
		}
		if !match {
			break
		}
	}
	if r.first == r.end {
		return ctx.Err()
	}
	buf := scanBuffers.Get().(*[granule]byte)
	defer scanBuffers.Put(buf)
	in := s.open(ctx, f.path, int64(r.first)*granule, min(int64(r.end)*granule, f.Size))
	defer in.Close()
	for i := r.first; i < r.end; i++ {
		b := buf[:lengthOf(i, f.Size)]
		if _, err := io.ReadFull(in, b); err != nil {
			return err
		}
		if err := to.Put(i, b); err != nil {
			return err
		}
	}
	return nil
}

// ReadAt reads bytes that match their sums.
func (k *copied) ReadAt(p []byte, off int64) (int, error) {
	if err := k.trust(context.Background(), []index.Extent{{Off: off, Len: int64(len(p))}}); err != nil {
		return 0, err
	}
	return k.File().ReadAt(p, off)
}

// trust makes sure that all granules which extents touch match their sums.
func (k *copied) trust(ctx context.Context, extents []index.Extent) error {
	var doubtful []int
	for _, e := range extents {
		end := min(granules(e.Off+e.Len), granules(k.of.Size))
		for i := int(e.Off / granule); i < end; i++ {
			if !k.Proven(i) && (len(doubtful) == 0 || doubtful[len(doubtful)-1] != i) {
				doubtful = append(doubtful, i)
			}
		}
	}
	if len(doubtful) == 0 {
		return nil
	}
	return together(ctx, len(doubtful), func(ctx context.Context, n int) error {
		i := doubtful[n]
		err := k.Prove(ctx, i, func(b []byte) error { return k.fetch(ctx, i, b) })
		if err != nil && ctx.Err() == nil {
			err = meta.Worded(meta.ErrCorrupt, "local copy of %q: granule %d is corrupt on disk, and was not fetched again: %w", k.of.path, i, err)
		}
		return err
	})
}

// fetch fetches a granule again, if the file is still the version that the copy is of.
func (k *copied) fetch(ctx context.Context, i int, b []byte) error {
	at := int64(i) * granule
	in := k.source.open(ctx, k.of.path, at, at+int64(len(b)))
	defer in.Close()
	if _, err := io.ReadFull(in, b); err != nil {
		return err
	}
	return k.source.cluster.verify(ctx, index.File{Path: k.of.path, Stamp: k.of.stamp()})
}

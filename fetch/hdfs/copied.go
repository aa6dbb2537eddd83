package hdfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"rankfs/cache/blobs"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// granule is the unit in which a copy is fetched, checked and mended.
const granule = blobs.Granule

// A copied is the copy of one version of a file.
//
// Bytes that an earlier process wrote are compared with their sums before they
// are used for the first time, and fetched again where they do not match.
type copied struct {
	set *copies
	key string
	// Guarded by set.mu.
	use    *use  // nil if there is none
	failed error // why the last attempt to make it failed

	// The fields below belong to the goroutine of the use until the use is ready; if
	// there is no use, set.mu guards them.
	source *Source
	of     file
	blob   *blobs.Blob

	have    atomic.Int64  // bytes copied so far
	mending chan struct{} // a token: one granule is mended at a time
}

// keyOf names the copy of one version of a file, whatever its cluster is called:
// pool is that of its blocks, which no two clusters share.
func keyOf(pool string, f file) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s", pool, f.path, f.stamp()))
	return hex.EncodeToString(sum[:16])
}

func newCopied(set *copies, b *blobs.Blob) *copied {
	return &copied{set: set, key: b.Key(), blob: b, mending: make(chan struct{}, 1)}
}

// open opens the copy. If there is none it closes made, and makes the copy.
func (k *copied) open(ctx context.Context, made chan<- struct{}) error {
	err := k.blob.Open(ctx, k.of.Size)
	if err == nil {
		k.have.Store(k.of.Size)
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err = k.make(ctx, made); err != nil {
		if errors.Is(err, meta.ErrStale) || k.blob.Empty() { // nothing to go on with
			k.blob.Close()
			k.blob.Remove()
		}
		return fmt.Errorf("copy %q to this host: %w", k.of.path, err)
	}
	return nil
}

// make fetches the missing granules, and gives the copy its name.
func (k *copied) make(ctx context.Context, made chan<- struct{}) error {
	blocks, err := k.source.cluster.names.Locate(ctx, k.of.path, 0, k.of.Size)
	if err != nil {
		return k.source.gone(err)
	}
	whole := k.of
	whole.Blocks = blocks
	if err := whole.refuse(); err != nil {
		return err
	}
	k.have.Store(0)
	if err := k.begin(ctx); err != nil {
		return err
	}
	close(made)
	runs := cutRuns(blocks.Blocks, k.of.Size)
	if err := together(ctx, len(runs), func(ctx context.Context, i int) error { return k.fetch(ctx, runs[i]) }); err != nil {
		return err
	}
	if err := k.source.cluster.verify(ctx, index.File{Path: k.of.path, Stamp: k.of.stamp()}); err != nil {
		return err
	}
	return k.blob.Finish()
}

// begin takes all of the copy's room on the disk: a disk that is too small is
// found out before anything is fetched.
func (k *copied) begin(ctx context.Context) error {
	err := k.blob.Begin(ctx, k.of.Size)
	if errors.Is(err, meta.ErrNoSpace) && !k.blob.Counted() {
		k.set.sweep(0) // interrupted copies may be in the way
		err = k.blob.Begin(ctx, k.of.Size)
	}
	return err
}

// A run is granules that one stream fetches, from the first on.
type run struct{ first, end int }

// cutRuns makes a run of each block, rounded to granules, and several of a very
// large one.
func cutRuns(blocks []namenode.Block, size int64) (runs []run) {
	const most = maxPart / granule
	at, n := 0, blobs.Granules(size)
	for _, b := range blocks {
		for end := min(blobs.Granules(b.Off+b.Size), n); at < end; {
			next := min(end, at+most)
			runs = append(runs, run{at, next})
			at = next
		}
	}
	if at < n { // the file has shrunk: reading will say so
		runs = append(runs, run{at, n})
	}
	return runs
}

// fetch copies the granules of a run, except those that an earlier attempt copied.
func (k *copied) fetch(ctx context.Context, r run) error {
	buf := scanBuffers.Get().(*[granule]byte)
	defer scanBuffers.Put(buf)
	for ; r.first < r.end; r.first++ {
		match, err := k.blob.Match(r.first, buf[:])
		if err != nil {
			return err
		}
		if !match {
			break
		}
		k.have.Add(k.blob.Length(r.first))
	}
	if r.first == r.end {
		return ctx.Err()
	}
	in := k.source.open(ctx, k.of.path, int64(r.first)*granule, min(int64(r.end)*granule, k.of.Size))
	defer in.Close()
	for i := r.first; i < r.end; i++ {
		b := buf[:k.blob.Length(i)]
		if _, err := io.ReadFull(in, b); err != nil {
			return err
		}
		if err := k.blob.Put(i, b); err != nil {
			return err
		}
		k.have.Add(int64(len(b)))
	}
	return nil
}

package hdfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/index"
	"rankfs/meta"
)

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

	// The fields below are those of the use's goroutine until it is ready; if
	// there is no use, of whoever holds set.mu.
	source  *Source
	of      file
	size    int64
	release func() // of its bytes in the budget; nil: it has none, and no files
	whole   bool
	touched time.Time
	file    *os.File
	sums    *sums

	have    atomic.Int64  // bytes that are here
	mending chan struct{} // a token: one granule is mended at a time
}

// keyOf names the copy of one version of a file, whatever its cluster is called:
// pool is that of its blocks, which no two clusters share.
func keyOf(pool string, f file) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s", pool, f.path, f.stamp()))
	return hex.EncodeToString(sum[:16])
}

func isKey(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 16
}

func newCopied(set *copies, key string) *copied {
	return &copied{set: set, key: key, mending: make(chan struct{}, 1)}
}

func (k *copied) name(kind string) string { return filepath.Join(k.set.dir, k.key+"."+kind) }

// open opens the copy, or makes it, of which it tells by closing made.
func (k *copied) open(ctx context.Context, made chan<- struct{}) (err error) {
	k.size = k.of.Size
	if err = os.MkdirAll(k.set.dir, 0700); err == nil {
		err = k.load(ctx)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err = k.make(ctx, made); err != nil {
		if errors.Is(err, meta.ErrStale) || k.file != nil && k.sums.none() { // nothing to go on with
			k.close()
			k.remove()
		}
		return fmt.Errorf("copy %q to %s: %w", k.of.path, k.set.dir, err)
	}
	return nil
}

// load opens a copy that is there. One whose size or sums are not as they should
// be is as good as none.
func (k *copied) load(ctx context.Context) (err error) {
	if k.file, err = os.OpenFile(k.name("mdb"), os.O_RDWR, 0); err != nil {
		return err
	}
	k.whole = true
	if err = k.reserve(ctx); err != nil {
		return err
	}
	known := k.sums
	if known == nil {
		known = newSums(k.size)
	}
	info, err := k.file.Stat()
	if err == nil && info.Size() == k.size {
		if known.file, err = os.OpenFile(k.name("sums"), os.O_RDWR, 0); err == nil {
			k.sums = known
			if err = known.read(); err == nil {
				k.have.Store(k.size)
				return nil
			}
		}
	}
	k.set.log.Warn("copy discarded: it is not as it was written", "copy", k.name("mdb"), "cause", err)
	k.close()
	k.remove()
	return os.ErrNotExist
}

// make fetches what is missing, and gives the copy its name.
func (k *copied) make(ctx context.Context, made chan<- struct{}) error {
	k.whole = false
	blocks, err := k.source.cluster.names.Locate(ctx, k.of.path, 0, k.size)
	if err != nil {
		return k.source.gone(err)
	}
	whole := k.of
	whole.Blocks = blocks
	if err := whole.refuse(); err != nil {
		return err
	}
	if err := k.prepare(ctx); err != nil {
		return err
	}
	close(made)
	runs := cutRuns(blocks.Blocks, k.size)
	if err := together(ctx, len(runs), func(ctx context.Context, i int) error { return k.fetch(ctx, runs[i]) }); err != nil {
		return err
	}
	if err := k.source.cluster.verify(ctx, index.File{Path: k.of.path, Stamp: k.of.stamp()}); err != nil {
		return err
	}
	return k.finish()
}

// prepare makes the files, with all of their room on the disk: a disk that is
// too small is found out before anything is fetched.
func (k *copied) prepare(ctx context.Context) (err error) {
	if err := k.reserve(ctx); err != nil {
		return err
	}
	k.have.Store(0)
	k.sums = newSums(k.size)
	if k.file, err = os.OpenFile(k.name("part"), os.O_RDWR|os.O_CREATE, 0600); err != nil {
		return err
	}
	if k.sums.file, err = os.OpenFile(k.name("sums"), os.O_RDWR|os.O_CREATE, 0600); err != nil {
		return err
	}
	if err := k.allot(k.sums.file, sumsBytes(k.size)); err != nil {
		return err
	}
	if err := k.sums.read(); err != nil {
		return err
	}
	return k.allot(k.file, k.size)
}

// allot gives a file its size, and the room for it.
func (k *copied) allot(f *os.File, size int64) error {
	err := f.Truncate(size)
	if err == nil {
		err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil // the room is found out about by writing
	}
	return k.refused(err)
}

// refused says of an error of the disk what can be done.
func (k *copied) refused(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %w: its disk has no room for the %d bytes; free some there, or mount with --nvme on a larger one",
			meta.ErrNoSpace, err, k.size)
	}
	return err
}

// reserve counts the files in the budget of the disk.
func (k *copied) reserve(ctx context.Context) (err error) {
	if k.release != nil {
		return nil
	}
	const block = 4 << 10
	need := (k.size+block-1)/block*block + (sumsBytes(k.size)+block-1)/block*block
	k.release, err = k.set.space.Reserve(ctx, need)
	if errors.Is(err, meta.ErrNoSpace) {
		k.set.sweep(0) // interrupted copies may be in the way
		k.release, err = k.set.space.Reserve(ctx, need)
	}
	return err
}

// A run is granules that one stream fetches, from the first on.
type run struct{ first, end int }

// cutRuns makes a run of each block, rounded to granules, and several of a very
// large one.
func cutRuns(blocks []namenode.Block, size int64) (runs []run) {
	const most = maxPart / granule
	at, n := 0, granules(size)
	for _, b := range blocks {
		for end := min(granules(b.Off+b.Size), n); at < end; {
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

// fetch brings the granules of a run, but for those that an earlier attempt has
// brought.
func (k *copied) fetch(ctx context.Context, r run) error {
	buf := scanBuffers.Get().(*[granule]byte)
	defer scanBuffers.Put(buf)
	for ; r.first < r.end; r.first++ {
		match, err := k.sums.match(k.file, r.first, buf[:])
		if err != nil {
			return err
		}
		if !match {
			break
		}
		k.have.Add(k.sums.length(r.first))
	}
	if r.first == r.end {
		return ctx.Err()
	}
	in := k.source.open(ctx, k.of.path, int64(r.first)*granule, min(int64(r.end)*granule, k.size))
	defer in.Close()
	for i := r.first; i < r.end; i++ {
		b := buf[:k.sums.length(i)]
		if _, err := io.ReadFull(in, b); err != nil {
			return err
		}
		if err := k.store(i, b); err != nil {
			return k.refused(err)
		}
		k.have.Add(int64(len(b)))
	}
	return nil
}

// store writes a granule, which the disk begins to take at once: the last sync
// then finds little to do.
func (k *copied) store(i int, b []byte) error {
	at := int64(i) * granule
	if _, err := k.file.WriteAt(b, at); err != nil {
		return err
	}
	_ = unix.SyncFileRange(int(k.file.Fd()), at, int64(len(b)), unix.SYNC_FILE_RANGE_WRITE)
	return k.sums.put(i, b)
}

// finish makes the copy last, and gives it its name.
func (k *copied) finish() error {
	if err := errors.Join(k.file.Sync(), k.sums.file.Sync()); err != nil {
		return k.refused(err)
	}
	if err := os.Rename(k.name("part"), k.name("mdb")); err != nil {
		return err
	}
	k.whole = true
	dir, err := os.Open(k.set.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// close closes the files. What was found out about them stays known.
func (k *copied) close() {
	k.touched = time.Now()
	if k.file != nil {
		k.file.Close()
		k.file = nil
	}
	if k.sums != nil && k.sums.file != nil {
		k.sums.file.Close()
		k.sums.file = nil
	}
}

// remove removes the files.
func (k *copied) remove() {
	for _, kind := range []string{"mdb", "part", "sums"} {
		if err := os.Remove(k.name(kind)); err != nil && !errors.Is(err, os.ErrNotExist) {
			k.set.log.Warn("copy not removed", "cause", err)
		}
	}
	k.whole, k.sums = false, nil
	if k.release != nil {
		k.release()
		k.release = nil
	}
}

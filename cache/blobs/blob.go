package blobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cache/disks"
	"rankfs/meta"
)

// A Blob is bytes on a disk that stay until they are removed, of one size.
//
//   - It has its bytes in the budget reserved for as long as it has files that this
//     process knows of.
//   - It has files while they are open: from the beginning of a use, when it is found
//     or begun, to its end.
//   - Once its sums say that a granule was proven, it stays so until it is removed.
//
// use and failed are guarded by the store's mu. The other fields belong to the goroutine
// of the use until the use is ready, and then do not change until its end; without a use
// the store's mu guards them. Users may call the exported methods concurrently; Maker
// calls Put for different granules.
type Blob struct {
	store   blobStore
	folders *folders
	key     string

	use    *use  // nil if there is none
	failed error // why the last attempt to make it failed

	folder   *disks.Folder // in which it is; nil: in none, as far as is known
	size     int64
	reserved *disks.Reservation // nil: it is not in the budget
	whole    bool
	touched  time.Time // when it was last used or written
	file     *disks.File
	sums     *sums

	have    atomic.Int64  // bytes that are there, while it is made
	mending chan struct{} // a token: one granule is mended at a time
}

// A blobStore is the store of a blob, as the blob knows it.
type blobStore interface {
	// leave ends the part of one user in the use of a blob.
	leave(b *Blob) (last bool)
	// sweep removes interrupted blobs that no owner wants and that were not touched for so long.
	sweep(patience time.Duration)
}

func newBlob(of blobStore, in *folders, key string) *Blob {
	return &Blob{store: of, folders: in, key: key, mending: make(chan struct{}, 1)}
}

// name is the name of a file of the blob, in its folder.
func (b *Blob) name(kind string) string { return b.key + "." + kind }

// path is the name of the whole blob's file, for people.
func (b *Blob) path() string { return b.folder.Path(b.name(b.folders.Suffix)) }

// open opens the blob if it is whole. The error is os.ErrNotExist if it is not,
// or not of its size, or its sums are gone: then it has been removed.
func (b *Blob) open(ctx context.Context) (err error) {
	b.miss()
	whole := b.folders.Suffix
	if !b.locate(whole) {
		return os.ErrNotExist
	}
	if err = b.reserve(ctx); err != nil {
		return err
	}
	b.whole = true
	if b.file, err = b.folder.Open(b.name(whole)); err != nil {
		return err
	}
	known := b.sums
	if known == nil {
		known = newSums(b.size)
	}
	size, err := b.file.Size()
	if err == nil && size != b.size {
		err = fmt.Errorf("%w: it has %d bytes, not %d", meta.ErrCorrupt, size, b.size)
	}
	if err == nil {
		if known.file, err = b.folder.Open(b.name(summed)); err == nil {
			b.sums = known
			err = known.read()
		}
	}
	if !errors.Is(err, meta.ErrCorrupt) && !errors.Is(err, fs.ErrNotExist) {
		return err // none, or one that says nothing of the blob
	}
	b.folders.Log.Warn("blob discarded: it is not as it was written", "blob", b.path(), "cause", err)
	b.close()
	b.remove()
	return os.ErrNotExist
}

// locate finds out in which folder the blob has a file of a kind, and reports
// whether there is one.
func (b *Blob) locate(kind string) bool {
	for _, f := range b.folders.all() {
		if b.reserved != nil && *f != *b.folder {
			continue
		}
		if f.Has(b.name(kind)) {
			b.folder = f
			return true
		}
	}
	return false
}

// miss forgets where the blob is if that cannot be read, or is another disk by now: it is
// found there, or else made elsewhere.
func (b *Blob) miss() {
	if b.reserved != nil && !among(b.folders.all(), b.folder) {
		b.forget()
	}
}

// reserve counts the files in the budget of the disk that they are on, or of any
// that has room for them.
func (b *Blob) reserve(ctx context.Context) error {
	if b.reserved != nil {
		return nil
	}
	const block = 4 << 10
	need := (b.size+block-1)/block*block + (sumsBytes(b.size)+block-1)/block*block
	in := ""
	if b.folder != nil {
		in = b.folder.Dir()
	}
	r, err := b.folders.Room.Reserve(ctx, need, in)
	if err == nil {
		b.reserved, b.folder = r, r.Folder(b.folders.Folder)
	}
	return err
}

// roomy tries again without interrupted blobs if they may be in the way of one.
func (b *Blob) roomy(try func() error) error {
	err := try()
	if errors.Is(err, meta.ErrNoSpace) && b.reserved == nil {
		b.store.sweep(0)
		err = try()
	}
	return err
}

// refused says of an error of the disk what can be done.
func (b *Blob) refused(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %w: its disk has no room for the %d bytes; free some there, or mount with --nvme on a larger one",
			meta.ErrNoSpace, err, b.size)
	}
	return err
}

// File is the blob's file. What is read there has to be proven first.
func (b *Blob) File() *os.File { return b.file.Bytes() }

// Proven reports whether granule i matched, or was written, since this process
// runs.
func (b *Blob) Proven(i int) bool { return b.sums.seen[i].Load() }

// Match reports whether the bytes of granule i have the sum that was written with them.
func (b *Blob) Match(i int) (bool, error) {
	match, err := b.sums.match(b.file, i)
	if match {
		b.have.Add(b.sums.length(i))
	}
	return match, err
}

// Put writes granule i, which is all of it.
func (b *Blob) Put(i int, content []byte) error {
	if n := b.sums.length(i); int64(len(content)) != n {
		return fmt.Errorf("write %d bytes as granule %d %w: it has %d", len(content), i, meta.ErrInvalid, n)
	}
	if _, err := b.file.WriteAt(content, int64(i)*Granule); err != nil {
		return b.refused(err)
	}
	if err := b.sums.put(i, content); err != nil {
		return b.refused(err)
	}
	b.have.Add(int64(len(content)))
	return nil
}

// Prove checks granule i against its sum. If they differ, fetch brings its bytes again, and
// they are written anew.
func (b *Blob) Prove(ctx context.Context, i int, fetch func(granule []byte) error) error {
	if b.Proven(i) {
		return nil
	}
	if match, err := b.sums.match(b.file, i); match && err == nil {
		return nil
	}
	select {
	case b.mending <- struct{}{}:
		defer func() { <-b.mending }()
	case <-ctx.Done():
		return ctx.Err()
	}
	match, err := b.sums.match(b.file, i) // another user may have mended it meanwhile
	if match && err == nil {
		return nil
	}
	b.folders.Log.Warn("blob damaged on disk: fetching the granule again", "blob", b.path(), "granule", i, "cause", err)
	granule := make([]byte, b.sums.length(i))
	if err := fetch(granule); err != nil {
		return err
	}
	return b.Put(i, granule)
}

// finish makes the blob last, and gives it its name.
func (b *Blob) finish() error {
	if err := b.sums.file.Sync(); err != nil {
		return b.refused(err)
	}
	if err := b.file.Seal(b.name(b.folders.Suffix)); err != nil {
		return b.refused(err)
	}
	b.whole = true
	return nil
}

// empty reports whether the blob has no granule yet.
func (b *Blob) empty() bool { return b.sums != nil && b.sums.none() }

// close closes the files. What was found out about them stays known.
func (b *Blob) close() {
	b.touched = time.Now()
	if b.file != nil {
		b.file.Close()
		b.file = nil
	}
	if b.sums != nil && b.sums.file != nil {
		b.sums.file.Close()
		b.sums.file = nil
	}
}

// Release ends one Take of the blob. If it was the last one, the files are
// closed when it has returned.
func (b *Blob) Release() {
	u := b.use
	if b.store.leave(b) {
		<-u.ended
	}
}

// remove removes the files of a blob that is closed, and gives back their room.
// So does it with those that it has in another directory since it was made anew
// while the disk of that one was out of reach.
func (b *Blob) remove() {
	for _, f := range b.folders.all() {
		b.folders.erase(f, b.key)
	}
	b.forget()
}

// forget gives back the room of a blob, whose files are gone or out of reach.
func (b *Blob) forget() {
	b.whole, b.sums, b.folder = false, nil, nil
	if b.reserved != nil {
		b.reserved.Release()
		b.reserved = nil
	}
}

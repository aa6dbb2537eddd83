package blobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A Blob is bytes on a disk that stay until Remove, of one size.
//
// It is in the budget for as long as it has files that this process knows of:
// from Open, Begin or Adopt to Remove. It is open from Open or Begin to Close.
// One goroutine at a time calls the methods, but for ReadAt, Match and Put of an
// open one, which may be called concurrently, Put for different granules.
type Blob struct {
	store   *Store
	key     string
	dir     string // in which it is; empty: in none, as far as is known
	size    int64
	release func() // of its bytes in the budget; nil: it is not in it
	whole   bool
	touched time.Time
	file    *os.File
	sums    *sums // kept over Close: what was proven stays so
}

const (
	whole  = "mdb"
	part   = "part"
	summed = "sums"
)

// Key is what the blob is found by: 32 hexadecimal digits.
func (b *Blob) Key() string { return b.key }

// Path is the name of the whole blob's file, once it has a directory.
func (b *Blob) Path() string { return b.name(whole) }

func (b *Blob) name(kind string) string { return filepath.Join(b.dir, folder, b.key+"."+kind) }

// Counted reports whether the blob is in the budget, and so may have files.
func (b *Blob) Counted() bool { return b.release != nil }

// Whole reports whether the blob is all there.
func (b *Blob) Whole() bool { return b.whole }

// Touched is when the blob was last used or written.
func (b *Blob) Touched() time.Time { return b.touched }

// Adopt counts a blob that List found in the budget. One that has no bytes is
// removed.
func (b *Blob) Adopt(ctx context.Context) error {
	if b.size == 0 {
		b.Remove()
		return nil
	}
	return b.reserve(ctx)
}

// Open opens the blob if it is whole. The error is os.ErrNotExist if it is not,
// or not of that size, or its sums are gone: then it has been removed.
func (b *Blob) Open(ctx context.Context, size int64) (err error) {
	b.size = size
	if !b.locate(whole) {
		return os.ErrNotExist
	}
	if b.file, err = os.OpenFile(b.name(whole), os.O_RDWR, 0); err != nil {
		return err
	}
	b.whole = true
	if err = b.reserve(ctx); err != nil {
		return err
	}
	known := b.sums
	if known == nil {
		known = newSums(size)
	}
	info, err := b.file.Stat()
	if err == nil && info.Size() != size {
		err = fmt.Errorf("%w: it has %d bytes, not %d", meta.ErrCorrupt, info.Size(), size)
	}
	if err == nil {
		if known.file, err = os.OpenFile(b.name(summed), os.O_RDWR, 0); err == nil {
			b.sums = known
			err = known.read()
		}
	}
	if !errors.Is(err, meta.ErrCorrupt) && !errors.Is(err, os.ErrNotExist) {
		return err // none, or one that says nothing of the blob
	}
	b.store.log.Warn("copy discarded: it is not as it was written", "copy", b.name(whole), "cause", err)
	b.Close()
	b.Remove()
	return os.ErrNotExist
}

// locate finds out in which directory the blob has a file of a kind, and reports
// whether there is one.
func (b *Blob) locate(kind string) bool {
	for _, dir := range b.store.room.Directories() {
		if b.release != nil && dir != b.dir {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, folder, b.key+"."+kind)); err == nil {
			b.dir = dir
			return true
		}
	}
	return false
}

// Begin makes the files of an unfinished blob, with all of their room on the
// disk, or opens those of an earlier attempt: Match tells what is there.
func (b *Blob) Begin(ctx context.Context, size int64) (err error) {
	b.whole, b.size = false, size
	if b.release != nil && !slices.Contains(b.store.room.Directories(), b.dir) {
		b.forget() // its disk is out of reach: another one takes it
	}
	if b.release == nil && !b.locate(part) {
		b.dir = "" // any
	}
	if err := b.reserve(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(b.dir, folder), 0700); err != nil {
		b.forget()
		return err
	}
	b.sums = newSums(size)
	if b.file, err = os.OpenFile(b.name(part), os.O_RDWR|os.O_CREATE, 0600); err != nil {
		return err
	}
	if b.sums.file, err = os.OpenFile(b.name(summed), os.O_RDWR|os.O_CREATE, 0600); err != nil {
		return err
	}
	if err := b.allot(b.sums.file, sumsBytes(size)); err != nil {
		return err
	}
	if err := b.sums.read(); err != nil {
		return err
	}
	return b.allot(b.file, size)
}

// reserve counts the files in the budget of the disk that they are on, or of any
// that has room for them.
func (b *Blob) reserve(ctx context.Context) (err error) {
	if b.release != nil {
		return nil
	}
	const block = 4 << 10
	need := (b.size+block-1)/block*block + (sumsBytes(b.size)+block-1)/block*block
	dir, release, err := b.store.room.Reserve(ctx, need, b.dir)
	if err == nil {
		b.dir, b.release = dir, release
	}
	return err
}

// allot gives a file its size, and the room for it.
func (b *Blob) allot(f *os.File, size int64) error {
	err := f.Truncate(size)
	if err == nil {
		err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil // the room is found out about by writing
	}
	return b.refused(err)
}

// refused says of an error of the disk what can be done.
func (b *Blob) refused(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %w: its disk has no room for the %d bytes; free some there, or mount with --nvme on a larger one",
			meta.ErrNoSpace, err, b.size)
	}
	return err
}

// File is the blob's file, while it is open. What is read there has to match first.
func (b *Blob) File() *os.File { return b.file }

// ReadAt reads bytes of granules that match.
func (b *Blob) ReadAt(p []byte, off int64) (int, error) { return b.file.ReadAt(p, off) }

// Length is that of granule i.
func (b *Blob) Length(i int) int64 { return b.sums.length(i) }

// Proven reports whether granule i matched, or was written, since this process
// runs.
func (b *Blob) Proven(i int) bool { return b.sums.seen[i].Load() }

// Match reports whether granule i is what it was written with. It uses buf, a
// granule's room.
func (b *Blob) Match(i int, buf []byte) (bool, error) { return b.sums.match(b.file, i, buf) }

// Put writes granule i, which the disk begins to take at once: the last sync then
// finds little to do.
func (b *Blob) Put(i int, content []byte) error {
	at := int64(i) * Granule
	if _, err := b.file.WriteAt(content, at); err != nil {
		return b.refused(err)
	}
	_ = unix.SyncFileRange(int(b.file.Fd()), at, int64(len(content)), unix.SYNC_FILE_RANGE_WRITE)
	return b.refused(b.sums.put(i, content))
}

// Finish makes the blob last, and gives it its name.
func (b *Blob) Finish() error {
	if err := errors.Join(b.file.Sync(), b.sums.file.Sync()); err != nil {
		return b.refused(err)
	}
	if err := os.Rename(b.name(part), b.name(whole)); err != nil {
		return err
	}
	b.whole = true
	dir, err := os.Open(filepath.Join(b.dir, folder))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// Empty reports whether the blob is open and has no granule yet.
func (b *Blob) Empty() bool { return b.file != nil && b.sums.none() }

// Close closes the files. What was found out about them stays known.
func (b *Blob) Close() {
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

// Remove removes the files of a blob that is closed, and gives back their room.
// So does it with those that it has in another directory since it was made anew
// while the disk of that one was out of reach.
func (b *Blob) Remove() {
	for _, dir := range b.store.room.Directories() {
		b.erase(dir)
	}
	b.forget()
}

// forget gives back the room of a blob, whose files are gone or out of reach.
func (b *Blob) forget() {
	b.whole, b.sums, b.dir = false, nil, ""
	if b.release != nil {
		b.release()
		b.release = nil
	}
}

// erase removes the files that the blob has in a directory.
func (b *Blob) erase(dir string) {
	for _, kind := range []string{whole, part, summed} {
		if err := os.Remove(filepath.Join(dir, folder, b.key+"."+kind)); err != nil && !errors.Is(err, os.ErrNotExist) {
			b.store.log.Warn("copy not removed", "cause", err)
		}
	}
}

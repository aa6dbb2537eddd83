package diskdir

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"rankfs/meta/slowdisk"
)

// A Dir is a directory on a disk: it makes, renames and removes files, and opens directories to sync
// them, by names below it. An *os.Root is one.
type Dir interface {
	OpenFile(name string, flag int, perm os.FileMode) (*os.File, error)
	Rename(from, to string) error
	Remove(name string) error
}

// A File is one that is made in a directory, and then stays what it is, or is mended.
//
//   - It is made by a name that says that it is unfinished. Seal gives it its own. One that is not
//     sealed is discarded, or gone on with or swept by the next daemon, as its kind has it.
//   - What it takes is counted before it is there, until it is discarded; of one that is sealed, until
//     the package that keeps it removes it, and gives that back.
//   - Of a durable file the bytes are on the disk before it has its name, and when it is sealed that
//     is, too. After each syncBytes they are written there, so that no call has much more to write.
//
// No lock guards it. Its system calls are made by the work that a method is given; once that is left
// behind none is, but what discards the file. WriteAt may be called concurrently.
type File struct {
	Dir        Dir
	Unfinished string // its name until it is sealed
	Name       string // and then
	Durable    bool
	Room       *Budget // where it is counted; nil: nowhere
	Takes      int64   // of that

	Bytes   *os.File // once it is created
	written atomic.Int64
	sealed  bool
}

const (
	writeBytes = 4 << 20 // by a call: a write gets the largest folio that fits, and ranks feel that
	syncBytes  = 64 << 20
)

// Create makes the file, or without O_EXCL opens what is there of it, with the blocks of so many
// bytes. If its disk has not got them it is there all the same.
func (f *File) Create(w *slowdisk.Work, flag int, perm os.FileMode, blocks int64) error {
	return w.Do(func() (err error) {
		f.Bytes, err = f.Dir.OpenFile(f.Unfinished, os.O_RDWR|os.O_CREATE|flag, perm)
		if err == nil && blocks > 0 {
			err = unix.Fallocate(int(f.Bytes.Fd()), 0, 0, blocks)
		}
		return err
	})
}

// Count says how much the file takes.
func (f *File) Count(bytes int64) {
	if f.Room != nil {
		f.Room.Add(bytes - f.Takes)
	}
	f.Takes = bytes
}

// WriteAt writes bytes, so many at a time, for as long as a caller waits for the work: then they may
// change.
func (f *File) WriteAt(w *slowdisk.Work, b []byte, off int64) error {
	for to := w.File(f.Bytes); len(b) > 0; {
		n, err := to.WriteAt(b[:min(len(b), writeBytes)], off)
		if err != nil {
			return err
		}
		b, off = b[n:], off+int64(n)
		if all := f.written.Add(int64(n)); f.Durable && all/syncBytes > (all-int64(n))/syncBytes {
			if err := f.Sync(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// Writer writes the file, from a byte on.
func (f *File) Writer(w *slowdisk.Work, off int64) io.Writer {
	return io.NewOffsetWriter(writerAt(func(b []byte, off int64) error { return f.WriteAt(w, b, off) }), off)
}

type writerAt func([]byte, int64) error

func (f writerAt) WriteAt(b []byte, off int64) (int, error) {
	if err := f(b, off); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Sync has the disk take all that was written.
func (f *File) Sync(w *slowdisk.Work) error { return w.File(f.Bytes).Sync() }

// Seal gives files of one directory their names, in their order. Either all are durable or none:
// they are synced at the same time, as a disk's journal takes as long for one, and the directory
// once.
func Seal(w *slowdisk.Work, files ...*File) error {
	errs := make([]error, len(files))
	var syncs sync.WaitGroup
	if files[0].Durable {
		for i, f := range files[1:] {
			syncs.Go(func() { errs[1+i] = f.Sync(w) })
		}
		errs[0] = files[0].Sync(w)
	}
	syncs.Wait()
	err := cmp.Or(errs...)
	for _, f := range files {
		if err == nil {
			err = w.Do(f.rename)
		}
	}
	if err == nil && files[0].Durable {
		err = w.Do(files[0].syncDir)
	}
	return err
}

func (f *File) rename() error {
	if f.sealed {
		return nil
	}
	err := f.Dir.Rename(f.Unfinished, f.Name)
	f.sealed = err == nil
	return err
}

func (f *File) syncDir() error {
	dir, err := f.Dir.OpenFile(filepath.Dir(f.Name), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Discard closes the file. One that is not sealed it removes, if there is one, and gives back what it
// takes.
func (f *File) Discard(w *slowdisk.Work) (err error) {
	if f.sealed {
		return f.Bytes.Close()
	}
	if f.Bytes != nil {
		err = w.Undo(func() error { return errors.Join(f.Dir.Remove(f.Unfinished), f.Bytes.Close()) })
	}
	f.Count(0)
	return err
}

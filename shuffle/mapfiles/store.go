package mapfiles

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/slowdisk"
	"rankfs/shuffle/access"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/memory"
	"rankfs/shuffle/openmaps"
)

// A Store is one of the places in which a job has maps.
type Store struct {
	root *os.Root
	disk *disk.Disk     // nil: it is in memory, where the kernel counts
	ram  *memory.Budget // of memory, where it is in that
	used *access.Names  // of the job's files
	open *openmaps.Maps // of the job, to be read
}

// Only the daemon names what is in a store, so that each of these is one system call:
// a root would open each of the directories on the way.

// Path is the path of what has a name there.
func (s Store) Path(name string) string { return filepath.Join(s.root.Name(), name) }

// OpenFile is as that of an os.Root.
func (s Store) OpenFile(name string, flag int, perm os.FileMode) (*os.File, error) {
	return openOwn(s.Path(name), flag, perm)
}

// openOwn opens a file that only the daemon can name, by one system call: a part has
// a file of each of its maps, and a root would open each of the directories on the way.
func openOwn(path string, flag int, perm os.FileMode) (*os.File, error) {
	for {
		fd, err := unix.Open(path, flag|unix.O_CLOEXEC|unix.O_NOFOLLOW, uint32(perm))
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case !errors.Is(err, unix.EINTR):
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// Lstat is as that of an os.Root.
func (s Store) Lstat(name string) (os.FileInfo, error) { return os.Lstat(s.Path(name)) }

// size is that of a file.
func (s Store) size(ctx context.Context, name string) (int64, error) {
	info, err := disk.Ask(ctx, s.disk, func() (os.FileInfo, error) { return s.Lstat(name) })
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Names are those in a directory; none if there is no such directory.
func (s Store) Names(ctx context.Context, dir string) ([]string, error) {
	return disk.Ask(ctx, s.disk, func() ([]string, error) { return meta.NamesIn(s.root, dir) })
}

// Rename is as that of an os.Root. The bytes of a file that had the name before are counted no more.
func (s Store) Rename(from, to string) error {
	if s.disk == nil {
		return unix.Rename(s.Path(from), s.Path(to))
	}
	return s.disk.Rename(s.Path(from), s.Path(to))
}

// Remove is as that of an os.Root, for files.
func (s Store) Remove(name string) error { return unix.Unlink(s.Path(name)) }

// remove removes a file. What stays on a disk that does not answer is swept.
func (s Store) remove(name string) {
	if s.disk == nil {
		_ = s.Remove(name)
		return
	}
	_ = s.disk.Do(context.Background(), func(w *slowdisk.Work) error {
		return w.Do(func() error {
			info, err := s.Lstat(name)
			if err == nil {
				err = s.Remove(name)
			}
			if err == nil {
				s.disk.Budget.Add(-disk.Blocks(info.Size()))
			}
			return err
		})
	})
}

// failed notes why something was not written, and returns that.
func (s Store) failed(err error) error {
	if cause := s.disk.Failed(err); cause != nil && errors.Is(err, fs.ErrNotExist) { // which is not said of the attempt
		return cause
	}
	return err
}

// RemoveAll removes a directory.
func (s Store) RemoveAll(name string) error {
	s.open.ForgetBelow(name)
	if s.disk != nil {
		return s.disk.Remove(s.root, name, s.used.Uses)
	}
	return s.root.RemoveAll(name)
}

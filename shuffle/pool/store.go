package pool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"rankfs/meta/durable"
	"rankfs/meta/slowdisk"
	"rankfs/meta/state"
	"rankfs/shuffle/access"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/memory"
	"rankfs/shuffle/openmaps"
	"rankfs/shuffle/pieces"
)

// A store is one of the places in which a job has maps.
type store struct {
	*os.Root
	disk *disk.Disk     // nil: it is in memory, where the kernel counts
	ram  *memory.Budget // of memory, where it is in that
	used *access.Names  // of the job's files
	open *openmaps.Maps // of the job, to be read
}

// Only the daemon names what is in a store, so that each of these is one system call:
// a root would open each of the directories on the way.

func (s store) at(name string) string { return filepath.Join(s.Name(), name) }

// OpenFile does what that of an os.Root does.
func (s store) OpenFile(name string, flag int, perm os.FileMode) (*os.File, error) {
	return openOwn(s.at(name), flag, perm)
}

// Lstat does what that of an os.Root does.
func (s store) Lstat(name string) (os.FileInfo, error) { return os.Lstat(s.at(name)) }

// size is that of a file.
func (s store) size(ctx context.Context, name string) (int64, error) {
	info, err := disk.Ask(ctx, s.disk, func() (os.FileInfo, error) { return s.Lstat(name) })
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// names are those in a directory; none if there is no such directory.
func (s store) names(ctx context.Context, dir string) ([]string, error) {
	return disk.Ask(ctx, s.disk, func() ([]string, error) { return namesIn(s.Root, dir) })
}

// namesIn are the names in a directory; none if there is no such directory.
func namesIn(root *os.Root, dir string) (names []string, err error) {
	d, err := root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// Rename does what that of an os.Root does, for files.
func (s store) Rename(from, to string) error { return unix.Rename(s.at(from), s.at(to)) }

// Remove does what that of an os.Root does, for files.
func (s store) Remove(name string) error { return unix.Unlink(s.at(name)) }

// link gives a file that is open another name.
func (s store) link(file *os.File, name string) error {
	return unix.Linkat(int(file.Fd()), "", unix.AT_FDCWD, s.at(name), unix.AT_EMPTY_PATH)
}

// remove removes a file. What stays on a disk that does not answer is swept.
func (s store) remove(name string) {
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
				s.disk.Give(disk.Blocks(info.Size()))
			}
			return err
		})
	})
}

// removeAll removes a directory.
func (s store) removeAll(name string) error {
	s.open.ForgetBelow(name)
	if s.disk != nil {
		return s.disk.Remove(s.Root, name)
	}
	return s.RemoveAll(name)
}

// put writes a map and its table, of which r has the bytes; if lasting so that both are on
// the disk afterwards.
func (s store) put(ctx context.Context, name string, t pieces.Table, r io.Reader, lasting bool) error {
	if s.disk == nil {
		return s.putBy(nil, name, t, r, lasting)
	}
	return s.disk.Do(ctx, func(w *slowdisk.Work) error { return s.putBy(w, name, t, r, lasting) })
}

func (s store) putBy(w *slowdisk.Work, name string, t pieces.Table, r io.Reader, lasting bool) error {
	if err := w.Do(func() error { return s.MkdirAll(path.Dir(name), 0700) }); err != nil {
		return err
	}
	size := t.Size()
	err := beside(lasting, func() error { return s.place(w, name+idx, int64(len(t)), bytes.NewReader(t), lasting, nil) },
		func(table func() error) error { return s.place(w, name, size, t.Check(r, 0), lasting, table) })
	s.open.Forget(name) // what had the name before
	if err != nil || !lasting {
		return err
	}
	return w.Do(func() error { return s.sync(path.Dir(name)) })
}

// beside does one thing and another one, which may wait for it. Files of which both are to last
// do so together: a disk's journal takes as long for one.
func beside(lasting bool, one func() error, other func(done func() error) error) error {
	if !lasting {
		if err := one(); err != nil {
			return err
		}
		return other(func() error { return nil })
	}
	var work sync.WaitGroup
	var failed error
	work.Go(func() { failed = one() })
	done := func() error {
		work.Wait()
		return failed
	}
	err := other(done)
	return cmp.Or(err, done())
}

// place writes a file that has its name once it is whole, and once what it is not to be
// without is done, if there is something. There may be one of that name, with the same bytes.
func (s store) place(w *slowdisk.Work, name string, size int64, r io.Reader, lasting bool, with func() error) (err error) {
	if s.disk != nil {
		if !s.disk.Take(disk.Blocks(size)) {
			return disk.ErrFull
		}
		defer func() {
			if err != nil {
				s.disk.Give(disk.Blocks(size))
				s.disk.Failed(err)
			}
		}()
	} else {
		in, err := s.ram.Admit(size, r)
		if err != nil {
			return err
		}
		defer in.End()
		r = in
	}
	unfinished := fmt.Sprintf("%s.%08x%s", name, rand.Uint32(), incoming)
	done, err := s.used.Use(unfinished) // that it is not swept
	if err != nil {
		return err
	}
	defer done()
	var f *os.File
	err = w.Do(func() (err error) {
		f, err = s.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0400)
		return err
	})
	if err != nil {
		return err
	}
	out := disk.NewOutput(w, f, lasting)
	_, err = pieces.Copy(out, w.Reading(r))
	if err == nil && lasting {
		err = out.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil && with != nil {
		err = with()
	}
	if err == nil {
		err = w.Do(func() error { return s.rename(unfinished, name) })
	}
	if err != nil {
		return errors.Join(err, w.Undo(func() error { return s.Remove(unfinished) }))
	}
	return nil
}

// placeTable writes the table of a map that is not there yet: until it is, no reader looks for the
// table, which has its name at once. What has the name already is of the same map, or what was
// left of it.
func (s store) placeTable(name string, size int64, r io.Reader) error {
	f, err := s.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0400)
	if errors.Is(err, fs.ErrExist) {
		return s.place(nil, name, size, r, false, nil)
	}
	if err != nil {
		return err
	}
	_, err = pieces.Copy(f, r)
	return errors.Join(err, f.Close())
}

// rename gives a file its name. What has had it before is counted no more.
func (s store) rename(from, to string) error {
	if s.disk == nil {
		return s.Rename(from, to)
	}
	return s.disk.Rename(s.at(from), s.at(to))
}

// sync has directories last: one, and those above it, which never come again once they went.
func (s store) sync(dir string) error {
	for at := dir; ; at = path.Dir(at) {
		if err := durable.SyncDir(s.at(at)); err != nil {
			return err
		}
		if at == "." || s.disk.Lasts(s.at(dir), false) {
			s.disk.Lasts(s.at(dir), true)
			return nil
		}
	}
}

// openMap opens the file of a map and that of its table.
func (s store) openMap(name string) (file, table *os.File, err error) {
	both, err := disk.Ask(context.Background(), s.disk, func() (both [2]*os.File, err error) {
		if both[0], err = openOwn(s.at(name), os.O_RDONLY, 0); err != nil {
			return both, err
		}
		if both[1], err = openOwn(s.at(name+idx), os.O_RDONLY, 0); err != nil {
			both[0].Close()
			both[0] = nil
		}
		return both, err
	})
	return both[0], both[1], err
}

// hasTail reports whether what a file lacks of a map stands behind the map's table.
func (s store) hasTail(name string, size int64, c state.Commit) bool {
	if s.disk != nil || size > c.Size {
		return false
	}
	info, err := s.Lstat(name + idx)
	if err != nil {
		return false
	}
	table := info.Size() + size - c.Size
	return table > 0 && table%pieces.RowBytes == 0
}

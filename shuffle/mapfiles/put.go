package mapfiles

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"rankfs/meta/diskdir"
	"rankfs/meta/durable"
	"rankfs/meta/slowdisk"
	"rankfs/shuffle/pieces"
)

// put writes a map and its table, of which r has the bytes; if lasting so that both are on
// the disk afterwards.
func (s Store) put(ctx context.Context, name string, t pieces.Table, r io.Reader, lasting bool) error {
	return s.disk.Do(ctx, func(w *slowdisk.Work) error {
		if err := s.makeDirOf(w, name); err != nil {
			return err
		}
		table, err := s.written(w, name+Idx, int64(len(t)), bytes.NewReader(t), lasting)
		if err != nil {
			return err
		}
		defer table.discard(w)
		file, err := s.written(w, name, t.Size(), t.Check(r, 0), lasting)
		if err != nil {
			return err
		}
		defer file.discard(w)
		return s.seal(w, table, file)
	})
}

// makeDirOf makes the directory in which a name is, where something may be written.
func (s Store) makeDirOf(w *slowdisk.Work, name string) error {
	if s.disk != nil && !s.disk.Take(0) {
		return s.disk.Full()
	}
	return s.failed(w.Do(func() error { return s.root.MkdirAll(path.Dir(name), 0700) }))
}

// seal gives the files of a map their names: the table first.
func (s Store) seal(w *slowdisk.Work, table, file *unfinished) error {
	err := diskdir.Seal(w, &table.File, &file.File)
	s.open.Forget(file.Name) // what had the name before
	if err == nil && file.Durable {
		err = w.Do(func() error { return s.outlast(path.Dir(file.Name)) })
	}
	return s.failed(cmp.Or(err, table.Bytes.Close(), file.Bytes.Close()))
}

// outlast syncs the directories above dir, so that dir survives a crash. To do so once is enough:
// none of them is removed and made again.
func (s Store) outlast(dir string) error {
	if s.disk.Lasts(s.Path(dir), false) {
		return nil
	}
	for at := dir; at != "."; {
		at = path.Dir(at)
		if err := durable.SyncDir(s.Path(at)); err != nil {
			return err
		}
	}
	s.disk.Lasts(s.Path(dir), true)
	return nil
}

// placeTable writes the table of a map that is not there yet: until it is, no reader looks for the
// table, which has its name at once. What has the name already is of the same map, or what was
// left of it.
func (s Store) placeTable(name string, size int64, r io.Reader) error {
	f, err := s.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0400)
	if errors.Is(err, fs.ErrExist) {
		u, err := s.written(nil, name, size, r, false)
		if err == nil {
			defer u.discard(nil)
			err = diskdir.Seal(nil, &u.File)
		}
		return err
	}
	if err != nil {
		return err
	}
	_, err = pieces.Copy(f, r)
	return errors.Join(err, f.Close())
}

// link gives a file that is open another name.
func (s Store) link(file *os.File, name string) error {
	return unix.Linkat(int(file.Fd()), "", unix.AT_FDCWD, s.Path(name), unix.AT_EMPTY_PATH)
}

package mapfiles

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
	"sync"

	"golang.org/x/sys/unix"

	"rankfs/meta/durable"
	"rankfs/meta/slowdisk"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/pieces"
)

// put writes a map and its table, of which r has the bytes; if lasting so that both are on
// the disk afterwards.
func (s Store) put(ctx context.Context, name string, t pieces.Table, r io.Reader, lasting bool) error {
	if s.disk == nil {
		return s.putBy(nil, name, t, r, lasting)
	}
	return s.disk.Do(ctx, func(w *slowdisk.Work) error { return s.putBy(w, name, t, r, lasting) })
}

func (s Store) putBy(w *slowdisk.Work, name string, t pieces.Table, r io.Reader, lasting bool) error {
	if err := w.Do(func() error { return s.root.MkdirAll(path.Dir(name), 0700) }); err != nil {
		return err
	}
	size := t.Size()
	err := beside(lasting, func() error { return s.place(w, name+Idx, int64(len(t)), bytes.NewReader(t), lasting, nil) },
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
func (s Store) place(w *slowdisk.Work, name string, size int64, r io.Reader, lasting bool, with func() error) (err error) {
	if s.disk != nil {
		if !s.disk.Take(disk.Blocks(size)) {
			return s.disk.Full()
		}
		defer func() {
			if err == nil {
				return
			}
			s.disk.Give(disk.Blocks(size))
			if s.disk.Failed(err) && errors.Is(err, fs.ErrNotExist) { // which is not said of the attempt
				err = disk.ErrGone
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
func (s Store) placeTable(name string, size int64, r io.Reader) error {
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
func (s Store) rename(from, to string) error {
	if s.disk == nil {
		return unix.Rename(s.Path(from), s.Path(to))
	}
	return s.disk.Rename(s.Path(from), s.Path(to))
}

// sync has directories last: one, and those above it, which never come again once they went.
func (s Store) sync(dir string) error {
	for at := dir; ; at = path.Dir(at) {
		if err := durable.SyncDir(s.Path(at)); err != nil {
			return err
		}
		if at == "." || s.disk.Lasts(s.Path(dir), false) {
			s.disk.Lasts(s.Path(dir), true)
			return nil
		}
	}
}

// link gives a file that is open another name.
func (s Store) link(file *os.File, name string) error {
	return unix.Linkat(int(file.Fd()), "", unix.AT_FDCWD, s.Path(name), unix.AT_EMPTY_PATH)
}

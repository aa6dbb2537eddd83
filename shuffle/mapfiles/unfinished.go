package mapfiles

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"rankfs/meta/diskdir"
	"rankfs/meta/slowdisk"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/pieces"
)

// An unfinished file is to be one of a map. Nothing sweeps it meanwhile.
type unfinished struct {
	diskdir.File
	in   Store
	has  int64
	done func() // nothing uses it any more
}

// written is a file that is to have a name, with all that r has. There may be one of that name, with
// the same bytes.
func (s Store) written(w *slowdisk.Work, name string, size int64, r io.Reader, lasting bool) (*unfinished, error) {
	u, err := s.begin(w, fmt.Sprintf("%s.%08x%s", name, rand.Uint32(), incoming), size)
	if err != nil {
		return nil, err
	}
	u.Name, u.Durable = name, lasting
	if err := u.add(w, size, r); err != nil {
		_ = u.discard(w)
		return nil, err
	}
	return u, nil
}

// begin makes a file, once there is room for so many bytes.
func (s Store) begin(w *slowdisk.Work, name string, bytes int64) (*unfinished, error) {
	done, err := s.used.Use(name)
	if err != nil {
		return nil, err
	}
	u := &unfinished{in: s, done: done, File: diskdir.File{Dir: s, Unfinished: name}}
	if s.disk != nil {
		u.Room = &s.disk.Budget
	}
	if err = u.grow(bytes); err == nil {
		err = s.failed(u.Create(w, os.O_EXCL, 0400, 0))
	}
	if err != nil {
		_ = u.discard(w)
		return nil, err
	}
	return u, nil
}

// grow counts what the file is to have, if a disk has room for it and is well.
func (u *unfinished) grow(to int64) error {
	if u.in.disk == nil {
		return nil
	}
	more := max(0, disk.Blocks(to)-u.Takes)
	if !u.in.disk.Take(more) {
		return u.in.disk.Full()
	}
	u.Takes += more
	return nil
}

// add writes n bytes more.
func (u *unfinished) add(w *slowdisk.Work, n int64, r io.Reader) error {
	if u.in.disk == nil {
		in, err := u.in.ram.Admit(n, r)
		if err != nil {
			return err
		}
		defer in.End()
		r = in
	}
	if err := u.grow(u.has + n); err != nil {
		return err
	}
	to := u.Writer(w, u.has)
	u.has += n
	got, err := pieces.Copy(to, w.Reading(r))
	if err == nil && got != n {
		err = io.ErrUnexpectedEOF
	}
	return u.in.failed(err)
}

// discard gives the file up, unless it is sealed.
func (u *unfinished) discard(w *slowdisk.Work) error {
	defer u.done()
	return u.Discard(w)
}

package disks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"rankfs/meta"
	"rankfs/meta/diskdir"
	"rankfs/meta/slowdisk"
)

// A Folder is where files that are not slabs lie in a directory, for as long as the
// directory is in one place. There may be no such folder yet. Its methods are watched,
// and may be called concurrently.
type Folder struct {
	health *health
	place  *place
	name   string
}

// Folders are the folders of that name in the directories that can be read now.
func (t *Tier) Folders(name string) (all []*Folder) {
	for _, d := range t.dirs {
		if p, err := d.reader.readable(); err == nil {
			all = append(all, &Folder{d.health, p, name})
		}
	}
	return all
}

// Dir is the path of the directory.
func (f *Folder) Dir() string { return f.health.Dir }

// Path is the name of a file in it, for people.
func (f *Folder) Path(name string) string { return filepath.Join(f.health.Dir, f.name, name) }

// List has the files in it.
func (f *Folder) List() ([]fs.FileInfo, error) {
	return ask(f.health, func(w *slowdisk.Work) (found []fs.FileInfo, err error) {
		var names []string
		err = w.Do(func() (err error) {
			names, err = meta.NamesIn(f.place.Root, f.name)
			return err
		})
		for _, name := range names {
			if err := w.Do(func() error {
				info, err := f.place.Root.Lstat(filepath.Join(f.name, name))
				if err == nil && info.Mode().IsRegular() {
					found = append(found, info)
				}
				return nil
			}); err != nil {
				return nil, err
			}
		}
		return found, err
	}, nil)
}

// Has reports whether there is a file of that name, as far as its disk says.
func (f *Folder) Has(name string) bool {
	info, err := ask(f.health, slowdisk.Once(func() (fs.FileInfo, error) { return f.place.Root.Lstat(filepath.Join(f.name, name)) }), nil)
	return err == nil && info.Mode().IsRegular()
}

// Open opens a file that is there, to read it and to mend it.
func (f *Folder) Open(name string) (*File, error) {
	path := filepath.Join(f.name, name)
	file, err := ask(f.health, slowdisk.Once(func() (*os.File, error) { return f.place.Root.OpenFile(path, os.O_RDWR, 0) }),
		func(f *os.File) { f.Close() })
	if err != nil {
		return nil, err
	}
	return &File{f.health, &diskdir.File{Name: path, Durable: true, Bytes: file}}, nil
}

// Remove removes files, if they are there.
func (f *Folder) Remove(names ...string) error {
	_, err := ask(f.health, slowdisk.Once(func() (none struct{}, err error) {
		for _, name := range names {
			if gone := f.place.Root.Remove(filepath.Join(f.name, name)); !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
		return none, err
	}), nil)
	return err
}

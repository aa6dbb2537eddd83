// Package durable changes small files so that a crash, of the process or of the
// machine, leaves them as they were or as they are to be, and nothing between.
//
// A change is on the disk once its function returns without an error. Two that change the
// same file at once are the caller's to prevent.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile makes path hold data, as os.WriteFile does. What was there is
// replaced, its mode too. It does not make directories.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err == nil {
		err = errors.Join(WriteIn(dir, filepath.Base(path), data, mode), dir.Close())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteIn is WriteFile in a directory that is open. The errors name no more than
// name.
func WriteIn(dir *os.Root, name string, data []byte, mode fs.FileMode) error {
	fresh := name + ".new"
	err := writeAnew(dir, fresh, data, mode)
	if err == nil {
		err = dir.Rename(fresh, name)
	}
	if err != nil {
		dir.Remove(fresh)
		return err
	}
	return SyncIn(dir, ".")
}

// writeAnew writes a file of its own, whatever a crash left under that name.
func writeAnew(dir *os.Root, name string, data []byte, mode fs.FileMode) error {
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// Rename gives a file that was written the name path, in the place of what has
// it. The file stays open.
func Rename(f *os.File, path string) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a directory last as they are now.
func SyncDir(path string) error { return synced(os.Open(path)) }

// SyncIn is SyncDir for one below a directory that is open.
func SyncIn(root *os.Root, name string) error { return synced(root.Open(name)) }

func synced(dir *os.File, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

package meta

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MakeDir makes a directory on a disk that an option names, unless it is there. What is
// above it has to be: where the disk is not mounted yet, all would be made on another one,
// and vanish below it later.
func MakeDir(path string) error {
	path = filepath.Clean(path)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil // a disk that takes no writes is asked for none
	}
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return MayMakeDir(path) // another thing may have the name
	}
	return unmade(path, err)
}

// MayMakeDir says why MakeDir would fail, and makes nothing.
func MayMakeDir(path string) error {
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		err = &fs.PathError{Op: "open", Path: path, Err: unix.ENOTDIR}
	case errors.Is(err, fs.ErrNotExist):
		if to, other := os.Readlink(path); other == nil {
			return fmt.Errorf("%s, to which it leads, %w: mount its disk first, or make it", to, ErrNotExist)
		}
		if err = unix.Access(filepath.Dir(path), unix.W_OK|unix.X_OK); err != nil {
			err = &fs.PathError{Op: "mkdir", Path: path, Err: err}
		}
	}
	return unmade(path, err)
}

// MayMakeIn says why nothing could be made in a directory, if it is there, and makes nothing.
func MayMakeIn(path string) error {
	err := unix.Access(path, unix.W_OK|unix.X_OK)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return unmade(path, &fs.PathError{Op: "write to", Path: path, Err: err})
}

// Missing are the directories of a path that are not there, the last one first.
func Missing(path string) (dirs []string) {
	for {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return dirs
		}
		dirs = append(dirs, path)
		path = filepath.Dir(path)
	}
}

// NamesIn are the names in a directory; none if there is no such directory.
func NamesIn(root *os.Root, dir string) (names []string, err error) {
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

// unmade says what to do where a directory cannot be made.
func unmade(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s %w: mount its disk first, or make it with: mkdir -p %[1]s", filepath.Dir(path), ErrNotExist)
	case errors.Is(err, unix.EROFS): // another one would be without what this has
		return Worded(err, "%s; have that take writes, or name a directory that this user can make and write to", WhyNot(err))
	case Impossible(err):
		err = Worded(ErrInvalid, "%w", err)
	}
	return Worded(err, "%s; name a directory that this user can make and write to", WhyNot(err))
}

package lmdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A place is where the parts of a database are.
type place struct {
	open   string // the path to give to LMDB
	data   string
	lock   string
	single bool // open is the file itself and not its directory
}

// locate finds the parts. The data file of a directory may be named too: if
// it were taken for a database of one file, its writers would be using
// another lock file.
func locate(path string) (place, error) {
	info, err := os.Stat(path)
	if err != nil {
		return place{}, fmt.Errorf("open lmdb: %w", meta.AtPath(path, err))
	}
	if !info.IsDir() && filepath.Base(path) == "data.mdb" {
		if _, err := os.Lstat(path + "-lock"); errors.Is(err, fs.ErrNotExist) {
			path, info = filepath.Dir(path), nil
		}
	}
	if info == nil || info.IsDir() {
		return place{path, filepath.Join(path, "data.mdb"), filepath.Join(path, "lock.mdb"), false}, nil
	}
	return place{path, path, path + "-lock", true}, nil
}

// A fileID tells a file from any other that exists at the same time.
type fileID struct{ device, inode uint64 }

func identify(fd int) (fileID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fileID{}, err
	}
	return fileID{uint64(st.Dev), st.Ino}, nil
}

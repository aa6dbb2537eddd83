package meta

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// MakeDir makes a directory on a disk that an option names, unless it is there. What is
// above it has to be: where the disk is not mounted yet, all would be made on another one,
// and vanish below it later.
func MakeDir(path string) error {
	path = filepath.Clean(path)
	err := os.Mkdir(path, 0o700)
	switch {
	case err == nil, errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s %w: mount its disk first, or make it with: mkdir -p %[1]s", filepath.Dir(path), ErrNotExist)
	}
	return fmt.Errorf("%w; name a directory that this user can make and write to", err)
}

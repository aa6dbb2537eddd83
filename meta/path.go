package meta

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// AtPath says in plain words why something at a path cannot be had; errors.Is finds in it what
// it finds in err.
func AtPath(path string, err error) error { return Worded(err, "%s: %s", path, WhyNot(err)) }

// WhyNot says it without the path, and without the names of calls.
func WhyNot(err error) string {
	var path *fs.PathError
	var call *os.SyscallError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file or directory"
	case errors.Is(err, unix.ENOTDIR):
		return "it is below a file, or not a directory"
	case errors.Is(err, unix.EISDIR):
		return "it is a directory, not a file"
	case errors.Is(err, unix.EROFS):
		return "it is on a read-only file system"
	case errors.As(err, &path):
		return path.Err.Error()
	case errors.As(err, &call):
		return call.Err.Error()
	}
	return err.Error()
}

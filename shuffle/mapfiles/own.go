package mapfiles

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openOwn opens a file that only the daemon can name, by one system call: a part has
// a file of each of its maps, and a root would open each of the directories on the way.
func openOwn(path string, flag int, perm os.FileMode) (*os.File, error) {
	for {
		fd, err := unix.Open(path, flag|unix.O_CLOEXEC|unix.O_NOFOLLOW, uint32(perm))
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case !errors.Is(err, unix.EINTR):
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

package disks

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// MostFiles is the first descriptor that a slab leaves to the daemon itself, who
// could not even answer an umount without one. The kernel gives the lowest number
// that is free.
func MostFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	n := min(limit.Cur, 1<<30)
	return int(n - min(n/64, 256))
}

// OutOfFiles reports whether all that lacked were descriptors of this process,
// which is no disk's fault.
func OutOfFiles(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }

var errOutOfFiles = fmt.Errorf("%w: %w", unix.EMFILE, ErrNoRoom)

package disks

import (
	"os"

	"golang.org/x/sys/unix"
)

// unmapped reports whether nobody else has the file open or mapped: only then
// does the kernel grant a write lease, which is given back at once.
func unmapped(f *os.File) bool {
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return false
	}
	_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	return true
}

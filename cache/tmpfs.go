package cache

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// mountTmpfs makes a tmpfs of at most size bytes that is attached nowhere: it
// has no path, no other process can reach it, and it goes when the last descriptor
// and mapping of its files go, even if the daemon is killed.
func mountTmpfs(size int64, huge string) (*os.File, error) {
	fsfd, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open tmpfs: %w (rankfs must run as root)", err)
	}
	defer unix.Close(fsfd)
	for _, option := range [][2]string{
		{"source", "rankfs-slabs"}, {"mode", "0700"}, {"huge", huge},
		{"size", strconv.FormatInt(size, 10)}, {"nr_inodes", "0"},
	} {
		if err := unix.FsconfigSetString(fsfd, option[0], option[1]); err != nil {
			return nil, fmt.Errorf("configure tmpfs: %s=%s: %w", option[0], option[1], err)
		}
	}
	if err := unix.FsconfigCreate(fsfd); err != nil {
		return nil, fmt.Errorf("create tmpfs: %w", err)
	}
	mfd, err := unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return nil, fmt.Errorf("mount tmpfs: %w", err)
	}
	return os.NewFile(uintptr(mfd), "rankfs-slabs"), nil
}

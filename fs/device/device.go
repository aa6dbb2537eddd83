package device

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"rankfs/meta/mountinfo"
)

// name is the type of a mount of ours: the kernel calls it fuse.rankfs.
const name = "rankfs"

// maxRead is the most bytes that a READ may ask for, where reads come here.
const maxRead = 1 << 20

// Mount opens and mounts a /dev/fuse. Without default_permissions, allow_other
// would let every user in, whatever the modes say.
func Mount(dir string, mode uint32, flags uintptr, allowOther bool) (fd int, err error) {
	if fd, err = unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return -1, err
	}
	options := fmt.Sprintf("fd=%d,rootmode=%o,user_id=%d,group_id=%d,max_read=%d,default_permissions",
		fd, mode&unix.S_IFMT, os.Geteuid(), os.Getegid(), maxRead)
	if allowOther {
		options += ",allow_other"
	}
	if err := unix.Mount(name, dir, mountinfo.FSType, flags, options); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// Explain says what may be lacking, of an error of a mount.
func Explain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: rankfs must run as root", err)
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%w: is there a /dev/fuse, and the directory?", err)
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%w: this kernel has no FUSE: modprobe fuse", err)
	}
	return err
}

package shortcircuit

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// An identity tells a file from earlier and later files in its place.
type identity struct {
	dev, ino uint64
	ctime    unix.StatxTimestamp
}

func identityOf(st *unix.Statx_t) identity {
	return identity{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino, st.Ctime}
}

// lookAt tells what is at a path, of which it follows no last link.
func lookAt(path string) (st unix.Statx_t, err error) {
	err = unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &st)
	return st, os.NewSyscallError("statx", err)
}

// look tells what the kernel knows of a file, and waits for no disk: of one whose filesystem
// would ask elsewhere for news (NFS, FUSE) it takes what was known last.
func look(f *os.File) (st unix.Statx_t, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return st, err
	}
	var got error
	err = raw.Control(func(fd uintptr) {
		got = unix.Statx(int(fd), "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS, &st)
	})
	return st, errors.Join(err, os.NewSyscallError("statx", got))
}

// An origin is the socket that a file came by, or did not. A datanode that begins anew
// makes a new one.
type origin struct {
	path string
	was  identity // zero if there was none
}

func (o origin) moved() bool {
	st, err := lookAt(o.path)
	if err != nil {
		return o.was != identity{}
	}
	return identityOf(&st) != o.was
}

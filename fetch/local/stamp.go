package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A stamp tells one version of a file from another.
type stamp struct {
	dev, ino     uint64
	mode         uint32 // the type of the file
	size         int64
	mtime, ctime int64 // nanoseconds
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{st.Dev, st.Ino, st.Mode & unix.S_IFMT, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
}

func stampOfInfo(info os.FileInfo) stamp {
	st := info.Sys().(*syscall.Stat_t)
	return stamp{st.Dev, st.Ino, st.Mode & unix.S_IFMT, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
}

func statFile(f *os.File) (stamp, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(int(f.Fd()), &st) })
	return stampOf(&st), os.NewSyscallError("fstat", err)
}

func statPath(path string) (stamp, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Stat(path, &st) })
	return stampOf(&st), os.NewSyscallError("stat", err)
}

func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func (s stamp) isRegular() bool { return s.mode == unix.S_IFREG }
func (s stamp) isDir() bool     { return s.mode == unix.S_IFDIR }

// inTree identifies a file of a tree in an index. It leaves out the device number,
// which may change when a machine starts anew.
func (s stamp) inTree() string {
	return fmt.Sprintf("%x.%x.%x", s.ino, s.mtime, s.ctime)
}

// difference says in words what distinguishes now from the version s.
func (s stamp) difference(now stamp) string {
	switch {
	case now.mode != s.mode:
		return "something of another kind took its place"
	case now.dev != s.dev || now.ino != s.ino:
		return "another file took its place"
	case now.size != s.size:
		return fmt.Sprintf("it had %d bytes and has %d", s.size, now.size)
	}
	return "it was written, renamed or linked"
}

// stale is the error for a path whose file is not the indexed one.
func stale(path, why string) error {
	return fmt.Errorf("%q: %w: %s", path, meta.ErrStale, why)
}

// gone is the error for a source of which nothing is left at its path.
func gone(path string) error { return fmt.Errorf("%q: %w", path, meta.ErrGone) }

// A tick is longer than any that the kernel stamps files with. On many file
// systems two changes within 10 ms may get one time.
const tick = 20 * time.Millisecond

// awaitStamp waits until a change of a file whose stamp has this ctime is sure to
// give it a later one. It returns at once for all but the newest files.
func awaitStamp(ctx context.Context, ctime int64) error {
	wait := tick - time.Since(time.Unix(0, ctime))
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(min(wait, tick)) // a time in the future is some clock's mistake
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// explain adds the next step to the errors of an open that have one.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EMFILE):
		var limit unix.Rlimit
		unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
		return fmt.Errorf("%w: the limit is %d; raise it with 'ulimit -n' or LimitNOFILE=", err, limit.Cur)
	case errors.Is(err, unix.ENFILE):
		return fmt.Errorf("%w: the limit of the machine is in /proc/sys/fs/file-max", err)
	}
	return err
}

package access

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// TryLeases is why files that users write cannot be committed here, nil if they can: the
// kernel lets a daemon have leases on files of others only with CAP_LEASE, which containers
// mostly lack. It tries that on a file in memory, as those of jobs are, and leaves nothing behind.
func TryLeases() error {
	fd, err := unix.MemfdCreate("rankfs-lease", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("file to try leases of the shuffle pool with: %w", err)
	}
	file := os.NewFile(uintptr(fd), "rankfs-lease")
	defer file.Close()
	another := unix.Geteuid() + 1
	switch err := unix.Fchown(fd, another, -1); {
	case errors.Is(err, unix.EINVAL):
		return nil // its user namespace has no other users
	case errors.Is(err, unix.EPERM):
		return meta.Worded(meta.ErrDenied, "give a file of the shuffle pool to its user: %w: the daemon needs CAP_CHOWN: have it run with that, or mount without --pool-ram", err)
	case err != nil:
		return fmt.Errorf("give a file of the shuffle pool to its user: %w", err)
	}
	reader, err := os.Open("/proc/self/fd/" + strconv.Itoa(fd)) // as a commit reads it
	if err != nil {
		return fmt.Errorf("file to try leases of the shuffle pool with: %w", err)
	}
	defer reader.Close()
	file.Close() // it may count as one that writes
	if _, err := unix.FcntlInt(reader.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return errLease(err)
	}
	return nil
}

// leaseTime is how long a commit waits for the last writer of its file to be gone: the
// kernel may yet be at work on a close.
const leaseTime = time.Second

var errWritten = meta.Worded(meta.ErrBusy, "it is open for writing still, or mapped so; close it first")

// Lease waits for the last writer of a file to be gone: the kernel gives a lease to read it as soon as
// there is no descriptor that writes, and no mapping. It is given back by Unlease.
func Lease(ctx context.Context, file *os.File) error {
	deadline := time.Now().Add(leaseTime)
	for {
		_, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EBUSY):
			return errLease(err)
		case time.Now().After(deadline):
			return errWritten
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// Unlease gives a lease back.
func Unlease(file *os.File) error {
	_, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	return err
}

// errLease is why a lease on a file of another user was refused, with what to do.
func errLease(err error) error {
	need := ""
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		need = "the daemon needs CAP_LEASE on files of other users: have it run with that, in a container by 'docker run --cap-add LEASE'"
	case errors.Is(err, unix.EINVAL): // files of jobs are in memory, where leases can be had
		need = "this kernel gives none while its sysctl fs.leases-enable is 0: change that with 'sysctl fs.leases-enable=1'"
	default:
		return fmt.Errorf("lease on a file of the shuffle pool: %w", err)
	}
	return meta.Worded(meta.ErrDenied, "lease on a file of the shuffle pool, by which a commit knows that no program writes it: %w: %s, or mount without --pool-ram", err, need)
}

package mounts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/mountinfo"
)

// An Unmounted says what Unmount found and did.
type Unmounted struct {
	Mount string `json:"mount"`
	PID   int    `json:"pid,omitempty"` // of the daemon, if one was registered
	Stale bool   `json:"stale"`         // the daemon was dead already
	Lazy  bool   `json:"lazy"`          // detached: it ends with its last user

	// Elsewhere are processes that still see the mount, if the daemon goes on.
	Elsewhere []Holder `json:"-"`
}

// A BusyError says which processes keep a mount from being unmounted.
type BusyError struct {
	Mount   string
	Holders []Holder
	More    bool // there may be others
}

func (e *BusyError) Error() string { return fmt.Sprintf("unmount %s: %v", e.Mount, meta.ErrBusy) }

// Unwrap makes errors.Is find meta.ErrBusy.
func (e *BusyError) Unwrap() error { return meta.ErrBusy }

// Unmount unmounts the rankfs at dir and waits for its daemon to end, or for
// ctx. A mount whose daemon is dead is detached even if it is in use: nothing
// can be read through it any more. With lazy, any mount is detached, without a wait.
func Unmount(ctx context.Context, run, dir string, lazy bool) (Unmounted, error) {
	point, err := Resolve(dir)
	if err != nil {
		return Unmounted{}, err
	}
	m, err := ours(point)
	if err != nil {
		return Unmounted{}, err
	}
	daemons, err := List(run)
	if err != nil {
		return Unmounted{}, err
	}
	done := Unmounted{Mount: point, Lazy: lazy}
	i := slices.IndexFunc(daemons, func(e Entry) bool { return e.Mount == point })
	if i >= 0 {
		done.PID = daemons[i].PID
	} else {
		done.Stale = dead(point)
	}
	if err := detach(m, lazy || done.Stale); err != nil {
		return Unmounted{}, err
	}
	if i < 0 || lazy {
		return done, nil
	}
	if err := daemons[i].Wait(ctx); err != nil {
		done.Elsewhere = Elsewhere(m)
		return done, fmt.Errorf("unmount %s: it is unmounted, but its daemon goes on: %w", point, err)
	}
	_, err = List(run) // removes what a daemon that was killed left there
	return done, err
}

// Clean detaches the rankfs at dir if its daemon is dead, so that dir can be
// mounted on, and reports whether it did. A live one is an error wrapping
// meta.ErrExist.
func Clean(dir string) (bool, error) {
	point, table, err := lookUp(dir)
	if err != nil {
		return false, err
	}
	m, mounted := around(table, point)
	switch {
	case !mounted:
		return false, nil
	case m.Point != point:
		return false, meta.Worded(meta.ErrInvalid, "mount on %s: it is inside the rankfs mount %s", point, m.Point)
	case !dead(point):
		return false, meta.Worded(meta.ErrExist, "mount on %s: a rankfs is mounted there; unmount it with: rankfs umount %s", point, point)
	}
	return true, detach(m, true)
}

// lookUp is the path of dir, and all mounts.
func lookUp(dir string) (point string, table []mountinfo.Mount, err error) {
	if point, err = Resolve(dir); err == nil {
		table, err = mountinfo.Read()
	}
	return point, table, err
}

// Stale lists the mount points of rankfs whose daemon is dead.
func Stale() (points []string) {
	table, _ := mountinfo.Read()
	for _, m := range table {
		if m.Type == mountinfo.FSType && !isPool(table, m) && dead(m.Point) {
			points = append(points, m.Point)
		}
	}
	return points
}

// ours returns the mount at point if it is a rankfs.
func ours(point string) (mountinfo.Mount, error) {
	table, err := mountinfo.Read()
	if err != nil {
		return mountinfo.Mount{}, err
	}
	if m, ok := mountinfo.At(table, point); ok {
		if isPool(table, m) {
			whole, _ := around(table, point)
			return mountinfo.Mount{}, meta.Worded(meta.ErrInvalid, "unmount %s: it is the shuffle pool of a mount; use: rankfs umount %s", point, whole.Point)
		}
		if m.Type == mountinfo.FSType {
			return m, nil
		}
		return mountinfo.Mount{}, meta.Worded(meta.ErrInvalid, "unmount %s: it is a mount of type %s, not a rankfs", point, m.Type)
	}
	if m, ok := around(table, point); ok {
		return mountinfo.Mount{}, meta.Worded(meta.ErrInvalid, "unmount %s: it is inside a mount; use: rankfs umount %s", point, m.Point)
	}
	return mountinfo.Mount{}, meta.Worded(meta.ErrNotExist, "unmount %s: nothing is mounted there; see what is with: findmnt -t fuse.rankfs", point)
}

// UnmountPool unmounts the shuffle pool of a mount alone, and reports whether there is
// one at dir. Its daemon mounts it again, unless the mount goes as well.
func UnmountPool(dir string, lazy bool) (bool, error) {
	point, table, err := lookUp(dir)
	if err != nil {
		return false, err
	}
	m, ok := mountinfo.At(table, point)
	if !ok || !isPool(table, m) {
		return false, nil
	}
	whole, _ := around(table, point)
	return true, unmount(m, whole, lazy || dead(point))
}

// detach takes the shuffle pool of a mount away first, which stands in the way. If the mount
// itself turns out to be in use then, its daemon mounts the pool again.
func detach(m mountinfo.Mount, lazy bool) error {
	table, err := mountinfo.Read()
	if err != nil {
		return err
	}
	if p, ok := poolOf(table, m); ok {
		if !lazy {
			if holders, more := Holders(m); len(holders) > 0 {
				return &BusyError{m.Point, holders, more}
			}
		}
		if err := unmount(p, m, lazy); err != nil {
			return err
		}
	}
	return unmount(m, m, lazy)
}

// A mount is in use also while a process asks for its size, as df does and a command that
// looks which daemons are dead. That passes, and no process is found that has anything
// of it: an unmount tries again for so long.
const passing = 2 * time.Second

// unmount unmounts a mount, which is, or is part of, what a person knows as whole.
func unmount(m, whole mountinfo.Mount, lazy bool) error {
	flags := unix.UMOUNT_NOFOLLOW
	if lazy {
		flags |= unix.MNT_DETACH
	}
	for end := time.Now().Add(passing); ; time.Sleep(10 * time.Millisecond) {
		switch err := unix.Unmount(m.Point, flags); {
		case errors.Is(err, unix.EBUSY):
			holders, more := Holders(m)
			if len(holders) > 0 || more || time.Now().After(end) {
				return &BusyError{whole.Point, holders, more}
			}
		case errors.Is(err, unix.EPERM):
			return meta.Worded(meta.ErrDenied, "unmount %s: only root can unmount it; have root run: rankfs umount %[1]s", whole.Point)
		case err != nil:
			return fmt.Errorf("unmount %s: %w", m.Point, err)
		default:
			return nil
		}
	}
}

// dead reports whether no daemon serves the mount at point. It asks the kernel,
// which knows at once if the daemon has closed its end and asks the daemon
// otherwise: one that does not answer in time is alive, if only stopped.
func dead(point string) bool {
	const answer = 2 * time.Second
	result := make(chan error, 1)
	go func() { // ends with the answer, or with the process
		var s unix.Statfs_t
		result <- unix.Statfs(point, &s)
	}()
	select {
	case err := <-result:
		return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED)
	case <-time.After(answer):
		return false
	}
}

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cmd/internal/mounts"
	"rankfs/meta"
	"rankfs/meta/trust"
)

// How long a mount waits for the daemon before it. What was killed is gone in
// milliseconds, or in seconds if it had much memory; signalGrace is for the moment
// in which a signal is on its way and nothing shows it.
const (
	endingTime  = time.Minute
	signalGrace = time.Second
	tryAgain    = 10 * time.Millisecond // between two tries
)

// An exclusive has what only one daemon can hold at a time: a free mount point, the port
// of the node, a state directory, and the mount's entry in the registry.
type exclusive struct {
	point   string
	tcp     *net.TCPListener // which is closed by release too
	release func()
	forget  func() // what a daemon makes in a state directory before it is of a cluster
	entry   *mounts.OwnEntry
}

// takeOver gets what a daemon needs, and waits for one that had it and
// is ending. One that lives keeps it.
func takeOver(ctx context.Context, c Config) (exclusive, error) {
	start := time.Now()
	for {
		point, err := mounts.Resolve(c.Mount)
		if err != nil {
			return exclusive{}, err
		}
		dying, ends := mounts.Ending(c.RunDir, point, c.State)
		if !ends {
			h, err := take(ctx, c)
			if err == nil || !errors.Is(err, meta.ErrBusy) && !errors.Is(err, meta.ErrExist) {
				return h, err
			}
			if dying, ends = mounts.Ending(c.RunDir, point, c.State); !ends && time.Since(start) > signalGrace {
				return exclusive{}, err
			}
		}
		if ends && time.Since(start) > endingTime {
			return exclusive{}, fmt.Errorf("mount on %s: the daemon before, pid %d, was killed and has not ended in %v, %w; see what it waits for with: cat /proc/%[2]d/stack",
				point, dying.PID, endingTime, meta.ErrBusy)
		}
		select {
		case <-ctx.Done():
			return exclusive{}, ctx.Err()
		case <-time.After(tryAgain):
		}
	}
}

// take takes all of it or nothing. The state directory is made last, after all that
// may be refused.
func take(ctx context.Context, c Config) (h exclusive, err error) {
	if h.point, err = mountPoint(c.Mount); err != nil {
		return exclusive{}, err
	}
	if h.tcp, err = trust.Listen(ctx, c.Listen); err != nil {
		return exclusive{}, err
	}
	if err := c.try(); err != nil {
		h.tcp.Close()
		return exclusive{}, err
	}
	h.forget = beginning(c)
	unlock, err := lockState(c.State)
	if err != nil {
		h.tcp.Close()
		return exclusive{}, err
	}
	h.release = func() { unlock(); h.tcp.Close() }
	if h.entry, err = mounts.Register(c.RunDir, h.point, c.State); err != nil {
		h.release()
		return exclusive{}, err
	}
	return h, nil
}

// mountPoint makes dir absolute, and free if a dead daemon left its mount there.
func mountPoint(dir string) (string, error) {
	point, err := mounts.Resolve(dir)
	if err != nil {
		return "", err
	}
	if _, err := mounts.Clean(point); err != nil {
		return "", err
	}
	info, err := os.Stat(point)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("mount point %s %w; make it with: mkdir -p %[1]s", point, meta.ErrNotExist)
	}
	if meta.Impossible(err) {
		return "", meta.Worded(meta.ErrInvalid, "mount point %w; make another with: mkdir -p DIR", meta.AtPath(point, err))
	}
	if err != nil {
		return "", fmt.Errorf("mount point %w", meta.AtPath(point, err))
	}
	if !info.IsDir() {
		return "", fmt.Errorf("mount point %s %w: it is not a directory; make another with: mkdir -p DIR", point, meta.ErrInvalid)
	}
	return point, nil
}

// beginning gives a function that removes what a daemon that is not let in makes in its state directory:
// its node's id, and the directories. Where a daemon has begun before, or this one is of a
// cluster after all, nothing is removed.
func beginning(c Config) (forget func()) {
	made, id := meta.Missing(c.State), filepath.Join(c.State, "node")
	if slices.ContainsFunc([]string{id, c.trust()}, func(name string) bool {
		_, err := os.Lstat(name)
		return !errors.Is(err, os.ErrNotExist)
	}) {
		return func() {}
	}
	return func() {
		if _, err := trust.OpenAuthority(c.trust()); !errors.Is(err, meta.ErrNotExist) {
			return
		}
		_ = os.RemoveAll(c.trust())
		_ = os.Remove(id)
		_ = os.Remove(filepath.Join(c.State, "lock"))
		for _, dir := range made {
			_ = os.Remove(dir) // unless there is something of others in it
		}
	}
}

// lockState makes the state directory this daemon's own. The lock's file has the process id of
// the daemon that has it: that may live on where its mount was detached.
func lockState(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0700); err != nil {
		return nil, fmt.Errorf("state directory %w; choose another with --state", meta.AtPath(dir, err))
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0600)
	if err != nil {
		return nil, fmt.Errorf("state directory %w; choose another with --state", meta.AtPath(dir, err))
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer lock.Close()
		return nil, fmt.Errorf("state directory %s %w: %s, or choose another with --state", dir, meta.ErrBusy, heldBy(lock))
	}
	if err := lock.Truncate(0); err == nil { // no id rather than that of another process
		_, _ = fmt.Fprintln(lock, os.Getpid()) // which a full disk does not take
	}
	return func() { lock.Close() }, nil
}

// heldBy says which daemon has a lock.
func heldBy(lock *os.File) string {
	var pid int
	if _, err := fmt.Fscan(lock, &pid); err != nil {
		return "another rankfs uses it"
	}
	return fmt.Sprintf("the rankfs of process %d uses it; unmount that, or end it with kill %[1]d if its mount was detached already", pid)
}

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/mounts"
	"rankfs/meta"
	"rankfs/meta/mountinfo"
)

// A finder finds the daemon that a command asks.
type finder struct {
	run   string          // the run directory
	mount string          // which mount to ask, if there are several
	stale func() []string // mounts whose daemon is dead
	asked mounts.Entry    // the daemon that was found
}

// mountFlag adds the flag that names the mount of the daemon to ask.
func (f *finder) mountFlag(c *cobra.Command) {
	c.PersistentFlags().StringVar(&f.mount, "mount", "", "`DIR` where it is mounted, if several are")
}

// daemon finds the daemon to ask: the one that runs, or that of --mount.
func (f *finder) daemon() (*control.Client, error) {
	e, err := f.find()
	if err != nil {
		return nil, err
	}
	f.asked = e
	return control.Dial(e.Socket), nil
}

// noAnswer adds to the error of a daemon that says nothing what to do with it. One that
// went away is looked for again once it has ended: as a rule it is gone then.
func (f *finder) noAnswer(err error) error {
	if errors.Is(err, control.ErrGone) {
		return f.gone(err)
	}
	if !errors.Is(err, control.ErrNoAnswer) {
		return err
	}
	return failure.Hint(meta.Worded(err, "ask daemon of %s: it does not answer", f.asked.Mount),
		"if it is stopped (ps -o stat -p %[1]d), continue it with: kill -CONT %[1]d", f.asked.PID)
}

// gone is the error of finding the daemon again, if that fails, or else err.
func (f *finder) gone(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	if f.asked.Wait(ctx) != nil {
		return failure.Hint(err, "it runs still; ask again")
	}
	f.mount = f.asked.Mount
	if _, now := f.find(); now != nil {
		return now
	}
	return failure.Hint(err, "another serves the mount now; ask again")
}

// endTime is long enough for a daemon that was killed to end.
const endTime = 5 * time.Second

func (f *finder) find() (mounts.Entry, error) {
	running, err := mounts.List(f.run)
	if errors.Is(err, fs.ErrPermission) { // as releases before made it
		return mounts.Entry{}, failure.Hint(meta.Worded(meta.ErrDenied, "find mount: %s is closed to you", f.run), "have root mount again, which opens it; or run this as root")
	}
	if err != nil {
		return mounts.Entry{}, err
	}
	if f.mount != "" {
		return f.pick(running)
	}
	switch len(running) {
	case 0:
		return mounts.Entry{}, f.noMount()
	case 1:
		return running[0], nil
	}
	var list strings.Builder
	for _, e := range running {
		list.WriteString("\n  --mount " + e.Mount)
	}
	return mounts.Entry{}, failure.Hint(meta.Worded(failure.ErrUsage, "find mount: %d are running", len(running)), "choose one:%s", list.String())
}

func (f *finder) pick(running []mounts.Entry) (mounts.Entry, error) {
	point, err := mounts.Resolve(f.mount)
	if err != nil {
		return mounts.Entry{}, err
	}
	if i := slices.IndexFunc(running, func(e mounts.Entry) bool { return e.Mount == point || filepath.Join(e.Mount, meta.PoolDir) == point }); i >= 0 {
		return running[i], nil
	}
	if slices.Contains(f.stale(), point) {
		return mounts.Entry{}, failure.Hint(meta.Worded(meta.ErrNotExist, "find mount: the daemon of %s is gone", point),
			"clean up with: rankfs umount %s", point)
	}
	if slices.Contains(private(), point) {
		return mounts.Entry{}, errPrivate(point)
	}
	err = meta.Worded(meta.ErrNotExist, "find mount: no rankfs is mounted on %s", point)
	if len(running) > 0 {
		return mounts.Entry{}, failure.Hint(err, "there is one on %s", running[0].Mount)
	}
	return mounts.Entry{}, failure.Hint(err, "start it with: rankfs mount %s", point)
}

// noMount is the error where nothing runs, though something may have run.
func (f *finder) noMount() error {
	left := f.stale()
	for _, closed := range private() {
		if !slices.Contains(left, closed) {
			return errPrivate(closed)
		}
	}
	if len(left) > 0 {
		return failure.Hint(meta.Worded(meta.ErrNotExist, "find mount: the daemon of %s is gone", left[0]),
			"clean up with: rankfs umount %s", left[0])
	}
	return failure.Hint(meta.Worded(meta.ErrNotExist, "find mount: no rankfs is mounted"), "start one with: rankfs mount DIR")
}

// private are the mounts that a user other than root sees in the mount table
// and does not find registered.
func private() (points []string) {
	if os.Geteuid() == 0 {
		return nil
	}
	table, _ := mountinfo.Read()
	for _, m := range table {
		if m.Type == mountinfo.FSType {
			points = append(points, m.Point)
		}
	}
	return points
}

func errPrivate(point string) error {
	return failure.Hint(meta.Worded(meta.ErrDenied, "find mount: %s is not open to you: it is private, or registered in another run directory", point),
		"ask who mounted it, often root")
}

package disks

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A Dir is a directory for slabs and its budget in real bytes: blocks on disk,
// those of deleted slabs too for as long as a rank maps them.
type Dir struct {
	Path  string
	Bytes int64
}

// Config says what a tier may use.
type Config struct {
	Dirs  []Dir
	Floor Floor // of each file system, to be left free
	// First reports whether a is to be given up before b, of slabs that were
	// used long ago. If nil, the one used longest ago is. It may be called
	// concurrently.
	First func(a, b Key) bool
	Log   *slog.Logger

	// Suspend is how long a directory that failed is left alone: long enough
	// for a person to see why, short beside an epoch. So often it is seen, too, whether
	// one that is well may be written to.
	Suspend time.Duration
	// Patience is how long a disk may not answer. One that is healthy takes
	// milliseconds, a queue of other people's writes some seconds.
	Patience time.Duration
	// Trust is how long after a slab was hashed it is not hashed again, even
	// if it has left the page cache: one that is larger than memory would be
	// read through at each open.
	Trust time.Duration
	// Save is how often the index is written if anything has changed. What
	// changed since is found by looking through the names.
	Save time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Suspend == 0 {
		c.Suspend = 30 * time.Second
	}
	if c.Patience == 0 {
		c.Patience = 10 * time.Second
	}
	if c.Trust == 0 {
		c.Trust = time.Minute
	}
	if c.Save == 0 {
		c.Save = time.Minute
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, c.Check()
}

// Check refuses what no tier can be of, before anything is made.
func (c Config) Check() error {
	seen := make(map[string]bool)
	for _, d := range c.Dirs {
		if d.Bytes <= 0 {
			return meta.Worded(meta.ErrInvalid, "nvme directory %s: give it a budget above zero", d.Path)
		}
		path := filepath.Clean(d.Path)
		if seen[path] {
			return meta.Worded(meta.ErrInvalid, "nvme directory %s is given twice: give it once, with one budget", d.Path)
		}
		seen[path] = true
	}
	return nil
}

// enter has all directories entered, and fails if one of them cannot be a directory of the
// tier, which a person has to mend. One whose disk fails is for the tier to attend to.
func (c Config) enter(one func(Dir) error) error {
	var errs []error
	for _, dir := range c.Dirs {
		if err := one(dir); err != nil && !ofDisk(err) {
			errs = append(errs, fmt.Errorf("nvme directory %s: %w", dir.Path, err))
		}
	}
	return errors.Join(errs...)
}

// ofDisk reports whether an error of entering a directory is its disk's, and not of the path that
// was given, or of another process that has it.
func ofDisk(err error) bool {
	return !meta.Impossible(err) && !slices.ContainsFunc([]error{
		meta.ErrInvalid, meta.ErrNotExist, meta.ErrBusy, fs.ErrNotExist, fs.ErrPermission, unix.EROFS,
	}, func(of error) bool { return errors.Is(err, of) })
}

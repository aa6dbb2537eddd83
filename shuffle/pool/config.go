package pool

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/placement"
)

// Config has the parts that a pool is made of.
type Config struct {
	Dir     string            // of its own, for the file systems of jobs
	RAM     int64             // bytes that all jobs may have on this node; zero: none
	Used    func(bytes int64) // is told what they have
	Guest   bool              // this node keeps no map: what is written here goes to other nodes
	Disk    Disk              // for files of jobs beside those; zero: none
	State   State
	Cluster Cluster
	Member  Member
	Wire    *wire.Client
	Nodes   func() []placement.Node // that may keep copies
	Hosts   func() int              // of nodes that are admitted; nil: as many as may be asked for
	Log     *slog.Logger

	// Forget has the kernel forget the names of jobs and stages that are gone, and returns
	// when it has; nil if it knows none.
	Forget func()
}

// A Disk is a directory on a local disk, and how many bytes the pool may have there.
type Disk struct {
	Dir   string
	Bytes int64
}

// Try says why the directory could not be opened now, or made if it is not there, by a pool whose own
// directory is dir, and makes nothing. One that the pool has had before need not take writes now, as a
// file system that turned read-only by an error: what it has is read.
func (d Disk) Try(dir string) error {
	known, err := disk.Known(d.Dir, note(dir))
	if err == nil && !known {
		err = cmp.Or(meta.MayMakeDir(d.Dir), meta.MayMakeIn(d.Dir))
	}
	if err != nil {
		return fmt.Errorf("directory of the shuffle pool, %s: %w", d.Dir, err)
	}
	return nil
}

// note is where the pool notes which directory on a disk it has, among those of jobs in its own: by a name
// that "umount *" there passes over.
func note(dir string) string { return filepath.Join(dir, ".disk") }

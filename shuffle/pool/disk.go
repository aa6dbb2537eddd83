package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/durable"
)

// A Disk is a directory on a local disk, and how many bytes the pool may have there.
type Disk struct {
	Dir   string
	Bytes int64
}

// A disk is where the pool has files beside memory: copies for other nodes, what has to
// outlast the host, and what memory has no room for. Jobs have directories there by their
// numbers, as in memory. The lock guards what is used, when a write failed, and of which
// directories the names are known to last; files are written without it.
type disk struct {
	root  *os.Root // this node's alone
	bytes int64
	log   *slog.Logger

	works  diskWorks
	asks   diskWorks  // that only read, as they may where nothing is written
	naming sync.Mutex // before mu; held for the system calls that give a file its name

	mu struct {
		sync.Mutex
		used   int64     // of bytes, in whole blocks
		failed time.Time // when a write has, last

		lasting map[string]bool
		stay    map[uint64]bool // jobs whose directories are to be removed still
	}
}

const (
	block    = 4096
	restTime = 30 * time.Second // as long a disk that failed is left alone
)

// openDisk opens a directory for a node. Two nodes may have the same one: each has its own
// below that.
func openDisk(d Disk, self string, log *slog.Logger) (*disk, error) {
	dir := filepath.Join(d.Dir, "pool-"+self)
	for _, made := range []string{d.Dir, dir} {
		if err := meta.MakeDir(made); err != nil {
			return nil, fmt.Errorf("directory of the shuffle pool, %s: %w", d.Dir, err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("directory of the shuffle pool: %w", err)
	}
	is := &disk{root: root, bytes: d.Bytes, log: log}
	is.mu.lasting, is.mu.stay = make(map[string]bool), make(map[uint64]bool)
	is.mu.used, err = usage(root, ".")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("directory of the shuffle pool: %w", err), root.Close())
	}
	return is, nil
}

// Try says why the directory could not be made now, if it is not there, and makes nothing.
func (d Disk) Try() error {
	if err := cmp.Or(meta.MayMakeDir(d.Dir), meta.MayMakeIn(d.Dir)); err != nil {
		return fmt.Errorf("directory of the shuffle pool, %s: %w", d.Dir, err)
	}
	return nil
}

// usage is the number of bytes of files below a directory.
func usage(root *os.Root, dir string) (sum int64, err error) {
	err = fs.WalkDir(root.FS(), dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			sum += blocks(info.Size())
		}
		return err
	})
	return sum, err
}

func blocks(bytes int64) int64 { return (bytes + block - 1) / block * block }

// take counts bytes as used, if there is room for them and the disk is well.
func (d *disk) take(bytes int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.used+bytes > d.bytes || !d.well() {
		return false
	}
	d.mu.used += bytes
	return true
}

// free is the number of bytes that the disk would take now.
func (d *disk) free() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.well() {
		return 0
	}
	return max(0, d.bytes-d.mu.used)
}

func (d *disk) give(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.used -= bytes
}

// failed notes an error of writing, and reports whether it is one of the disk. While that is left
// alone there are no others, but of what was under way.
func (d *disk) failed(err error) bool {
	if !errors.Is(err, unix.EIO) && !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, errSilent) {
		return false
	}
	d.mu.Lock()
	again := time.Since(d.mu.failed) < restTime
	d.mu.failed = time.Now()
	d.mu.Unlock()
	if !again {
		d.log.Warn("the disk of the shuffle pool has failed, and is left alone for a while", "dir", d.root.Name(), "for", restTime, "cause", err)
	}
	return true
}

// jobs are the numbers of those that have a directory.
func (d *disk) jobs() (numbers []uint64) {
	entries, _ := fs.ReadDir(d.root.FS(), ".")
	for _, e := range entries {
		if n, err := strconv.ParseUint(e.Name(), 10, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// job opens the directory of a job, which is made.
func (d *disk) job(number uint64) (*os.Root, error) {
	var root *os.Root
	err := d.do(context.Background(), jobPatience, func(e *diskWork) error {
		return e.do(func() (err error) {
			root, err = d.openJob(number)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return root, nil
}

func (d *disk) openJob(number uint64) (*os.Root, error) {
	name := strconv.FormatUint(number, 10)
	root, err := d.root.OpenRoot(name) // so that what is there is read from a disk that takes no writes
	if !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	if err = d.root.Mkdir(name, 0700); err == nil {
		err = durable.SyncDir(d.root.Name())
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return d.root.OpenRoot(name)
}

// drop removes the directory of a job. One that stays, as the disk does not answer, is dropped
// once more by dropAgain.
func (d *disk) drop(number uint64) error {
	err := d.remove(d.root, strconv.FormatUint(number, 10))
	d.mu.Lock()
	defer d.mu.Unlock()
	if delete(d.mu.stay, number); err != nil {
		d.mu.stay[number] = true
	}
	return err
}

// dropAgain reports whether directories of jobs stay still.
func (d *disk) dropAgain() bool {
	d.mu.Lock()
	stay := slices.Collect(maps.Keys(d.mu.stay))
	d.mu.Unlock()
	return slices.ContainsFunc(stay, func(number uint64) bool { return d.drop(number) != nil })
}

// remove removes a directory below one of its own.
func (d *disk) remove(root *os.Root, name string) error {
	return d.do(context.Background(), patience, func(e *diskWork) error {
		bytes := int64(0)
		err := e.do(func() (err error) {
			bytes, err = usage(root, name)
			return err
		})
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		d.forget(filepath.Join(root.Name(), name))
		if err = errors.Join(err, e.do(func() error { return root.RemoveAll(name) })); err == nil {
			d.give(bytes)
		}
		return err
	})
}

// do has work done on the disk, until the disk is silent for too long, or ctx ends.
func (d *disk) do(ctx context.Context, patience time.Duration, work func(*diskWork) error) error {
	err := d.works.wait(ctx, patience, work)
	if err == errSilent {
		d.failed(err)
	}
	return err
}

// ask is what a system call says that reads the disk, if that answers. Where d is nil, the caller
// makes the call itself. A file that is opened too late is closed with the garbage.
func ask[T any](ctx context.Context, d *disk, call func() (T, error)) (says T, err error) {
	if d == nil {
		return call()
	}
	answer := new(T) // of its own, as the call may end after this
	err = d.asks.wait(ctx, patience, func(w *diskWork) error {
		return w.do(func() (err error) {
			*answer, err = call()
			return err
		})
	})
	switch {
	case err == nil:
		says = *answer
	case err == errFull: // since it did not answer before
		err = errSilent
	case err == errSilent:
		d.failed(err)
	}
	return says, err
}

// well reports whether it is not left alone. The lock is held.
func (d *disk) well() bool { return time.Since(d.mu.failed) >= restTime && !d.works.silent() }

// lasts reports whether the name of a directory is known to last, from now on if so.
func (d *disk) lasts(dir string, now bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now {
		d.mu.lasting[dir] = true
	}
	return d.mu.lasting[dir]
}

// forget says that a directory is gone.
func (d *disk) forget(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.mu.lasting, func(one string, _ bool) bool { return one == dir || strings.HasPrefix(one, dir+"/") })
}

// What a disk says that takes nothing.
var (
	errFull = meta.Worded(meta.ErrNoSpace, "the disk of the shuffle pool is full, or has failed: give --pool-nvme a larger SIZE, or remove jobs")
	errNone = meta.Worded(meta.ErrNoSpace, "the stage has ack=durable, and this node has no disk for its job: mount with --pool-nvme DIR:SIZE, or, if the log says that the disk had failed when the job was made, make the job anew")
)

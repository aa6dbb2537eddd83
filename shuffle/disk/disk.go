package disk

import (
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
	"rankfs/meta/slowdisk"
)

// A Disk is where the pool has files beside memory: copies for other nodes, what has to
// outlast the host, and what memory has no room for. Jobs have directories there by their
// numbers, as in memory. The lock guards what is used, when a write failed, and of which
// directories the names are known to last; files are written without it.
type Disk struct {
	root  *os.Root // this node's alone
	bytes int64
	log   *slog.Logger

	works  slowdisk.Disk // as what writes there finds it
	asks   slowdisk.Disk // as what reads there does, which may where nothing is written
	naming sync.Mutex    // before mu; held for the system calls that give a file its name

	mu struct {
		sync.Mutex
		used   int64     // of bytes, in whole blocks
		failed time.Time // when a write has, last

		lasting map[string]bool
		stay    map[uint64]bool // jobs whose directories are to be removed still
	}
}

const (
	blockBytes = 4096
	RestTime   = 30 * time.Second // as long a disk that failed is left alone

	// How long a disk may be silent: before a directory of its own is open, and amid other work.
	openPatience = 10 * time.Second
	patience     = 30 * time.Second
)

// ErrSilent is for work on a disk that does not answer.
var ErrSilent = meta.Worded(context.DeadlineExceeded, "the disk of the shuffle pool does not answer: try once more when it does")

// Open opens a directory for a node, which may have so many bytes there. Two nodes may have the
// same one: each has its own below that.
func Open(at string, bytes int64, self string, log *slog.Logger) (*Disk, error) {
	d := &Disk{bytes: bytes, log: log}
	d.mu.lasting, d.mu.stay = make(map[string]bool), make(map[uint64]bool)
	open := func(w *slowdisk.Work) (*os.Root, error) { return openRoot(w, at, filepath.Join(at, "pool-"+self)) }
	root, err := slowdisk.Run(context.Background(), &d.works, openPatience, open, func(late *os.Root) { late.Close() })
	if err == nil {
		used := func(w *slowdisk.Work) (sum int64, err error) {
			err = each(w, root, ".", func(_ string, bytes int64) error {
				sum += bytes
				return nil
			})
			return sum, err
		}
		d.root = root
		d.mu.used, err = slowdisk.Run(context.Background(), &d.works, openPatience, used, nil)
	}
	if err == slowdisk.ErrSilent {
		err = ErrSilent
	}
	if err != nil {
		return nil, fmt.Errorf("directory of the shuffle pool, %s: %w", at, err) // root goes with the garbage
	}
	return d, nil
}

// openRoot opens the last of directories that are made.
func openRoot(w *slowdisk.Work, dirs ...string) (root *os.Root, err error) {
	for _, dir := range dirs {
		if err := w.Do(func() error { return meta.MakeDir(dir) }); err != nil {
			return nil, err
		}
	}
	err = w.Do(func() (err error) {
		root, err = os.OpenRoot(dirs[len(dirs)-1])
		return err
	})
	return root, err
}

// each calls f with each file below a directory, if there is one, and its bytes. A disk that takes
// long for all of them is not silent.
func each(w *slowdisk.Work, root *os.Root, dir string, f func(name string, bytes int64) error) error {
	there := func(err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return w.Do(func() error {
		return fs.WalkDir(root.FS(), dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return there(err)
			}
			return w.Do(func() error {
				info, err := e.Info()
				if err == nil {
					err = f(name, Blocks(info.Size()))
				}
				return there(err)
			})
		})
	})
}

// Blocks are so many bytes of a file in whole blocks, as they are counted.
func Blocks(bytes int64) int64 { return (bytes + blockBytes - 1) / blockBytes * blockBytes }

// Take counts bytes as used, if there is room for them and the disk is well.
func (d *Disk) Take(bytes int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.used+bytes > d.bytes || !d.well() {
		return false
	}
	d.mu.used += bytes
	return true
}

// Room is what is used, and what may be.
func (d *Disk) Room() (used, bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.used, d.bytes
}

// Close closes the directory. The files stay.
func (d *Disk) Close() error { return d.root.Close() }

// Free is the number of bytes that the disk would take now.
func (d *Disk) Free() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.well() {
		return 0
	}
	return max(0, d.bytes-d.mu.used)
}

// Give counts bytes as used no more.
func (d *Disk) Give(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.used -= bytes
}

// Failed notes an error of writing, and reports whether it is one of the disk. While that is left
// alone there are no others, but of what was under way.
func (d *Disk) Failed(err error) bool {
	if !errors.Is(err, unix.EIO) && !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, ErrSilent) {
		return false
	}
	d.mu.Lock()
	again := time.Since(d.mu.failed) < RestTime
	d.mu.failed = time.Now()
	d.mu.Unlock()
	if !again {
		d.log.Warn("the disk of the shuffle pool has failed, and is left alone for a while", "dir", d.root.Name(), "for", RestTime, "cause", err)
	}
	return true
}

// Jobs are the numbers of those that have a directory.
func (d *Disk) Jobs() (numbers []uint64) {
	entries, _ := fs.ReadDir(d.root.FS(), ".")
	for _, e := range entries {
		if n, err := strconv.ParseUint(e.Name(), 10, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// Job opens the directory of a job, which is made.
func (d *Disk) Job(number uint64) (*os.Root, error) {
	open := slowdisk.Once(func() (*os.Root, error) { return d.openJob(number) })
	root, err := slowdisk.Run(context.Background(), &d.works, openPatience, open, func(late *os.Root) { late.Close() })
	return root, d.answer(err)
}

func (d *Disk) openJob(number uint64) (*os.Root, error) {
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

// Drop removes the directory of a job. One that stays, as the disk does not answer, is dropped
// once more by DropAgain.
func (d *Disk) Drop(number uint64) error {
	err := d.Remove(d.root, strconv.FormatUint(number, 10))
	d.mu.Lock()
	defer d.mu.Unlock()
	if delete(d.mu.stay, number); err != nil {
		d.mu.stay[number] = true
	}
	return err
}

// DropAgain reports whether directories of jobs stay still.
func (d *Disk) DropAgain() bool {
	d.mu.Lock()
	stay := slices.Collect(maps.Keys(d.mu.stay))
	d.mu.Unlock()
	return slices.ContainsFunc(stay, func(number uint64) bool { return d.Drop(number) != nil })
}

// Remove removes a directory below one of its own.
func (d *Disk) Remove(root *os.Root, name string) error {
	return d.Do(context.Background(), func(w *slowdisk.Work) error {
		err := each(w, root, name, func(file string, bytes int64) error {
			err := root.Remove(file)
			if err == nil {
				d.Give(bytes)
			}
			return err
		})
		d.forget(filepath.Join(root.Name(), name))
		return errors.Join(err, w.Do(func() error { return root.RemoveAll(name) }))
	})
}

// Do has work done on the disk, until the disk is silent for too long, or ctx ends.
func (d *Disk) Do(ctx context.Context, work func(*slowdisk.Work) error) error {
	_, err := slowdisk.Run(ctx, &d.works, patience, slowdisk.Plain(work), nil)
	return d.answer(err)
}

// answer is an error of work that writes, in words of the pool.
func (d *Disk) answer(err error) error {
	switch err {
	case slowdisk.ErrRefused:
		return ErrFull
	case slowdisk.ErrSilent:
		d.Failed(ErrSilent)
		return ErrSilent
	}
	return err
}

// Ask is what a system call says that reads the disk, if that answers. Where d is nil, the caller
// makes the call itself. A file that is opened too late is closed with the garbage.
func Ask[T any](ctx context.Context, d *Disk, call func() (T, error)) (T, error) {
	if d == nil {
		return call()
	}
	says, err := slowdisk.Run(ctx, &d.asks, patience, slowdisk.Once(call), nil)
	switch err {
	case slowdisk.ErrRefused: // since it did not answer before
		err = ErrSilent
	case slowdisk.ErrSilent:
		err = d.answer(err)
	}
	return says, err
}

// well reports whether it is not left alone. The lock is held.
func (d *Disk) well() bool { return time.Since(d.mu.failed) >= RestTime && !d.works.Silent() }

// Lasts reports whether the name of a directory is known to last, from now on if so.
func (d *Disk) Lasts(dir string, now bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now {
		d.mu.lasting[dir] = true
	}
	return d.mu.lasting[dir]
}

// Rename gives a file that is there another name. What has had that before is counted no more.
func (d *Disk) Rename(from, to string) error {
	d.naming.Lock()
	defer d.naming.Unlock()
	was, missing := os.Lstat(to)
	err := unix.Rename(from, to)
	if err == nil && missing == nil {
		d.Give(Blocks(was.Size()))
	}
	return err
}

// forget says that a directory is gone.
func (d *Disk) forget(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.mu.lasting, func(one string, _ bool) bool { return one == dir || strings.HasPrefix(one, dir+"/") })
}

// ErrFull is what a disk says that takes nothing.
var ErrFull = meta.Worded(meta.ErrNoSpace, "the disk of the shuffle pool is full, or has failed: give --pool-nvme a larger SIZE, or remove jobs")

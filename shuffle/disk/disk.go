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
	"rankfs/meta/diskdir"
	"rankfs/meta/durable"
	"rankfs/meta/slowdisk"
)

// A Disk is where the pool has files beside memory: copies for other nodes, what has to
// outlast the host, and what memory has no room for. Jobs have directories there by their
// numbers, as in memory. mu guards lasting, the directories whose names
// would survive a crash, and undropped; files are written without it.
type Disk struct {
	Budget diskdir.Budget // in whole blocks

	place  *diskdir.Place // this node's alone
	health diskdir.Health

	asks   slowdisk.Disk // the disk for reads, which may work while writes are refused
	naming sync.Mutex    // before mu; held for the system calls that give a file its name

	mu struct {
		sync.Mutex
		lasting   map[string]bool
		undropped map[uint64]bool // jobs whose directories are to be removed still
	}
}

const (
	blockBytes  = 4096
	SuspendTime = 30 * time.Second // as long a disk that failed is left alone

	// How long a disk may be silent: before a directory of its own is open, and amid other work.
	openPatience = 10 * time.Second
	patience     = 30 * time.Second
)

var (
	// ErrSilent is for work on a disk that does not answer.
	ErrSilent = meta.Worded(context.DeadlineExceeded, "the disk of the shuffle pool does not answer: try once more when it does")
	// ErrGone is for what is not found while the directory is gone: it may be there when that is back.
	ErrGone = meta.Worded(meta.ErrUnavailable, "disk of the shuffle pool: %w", diskdir.ErrGone)
)

// Open opens a directory for a node, which may have so many bytes there, unless its note says that it
// has another one. Two nodes may have the same one: each has its own place below that. Where a node's
// place takes no writes now it is read, and suspended, as after a write that failed.
func Open(at string, bytes int64, self, note string, log *slog.Logger) (*Disk, error) {
	d := &Disk{health: diskdir.Health{Name: "pool-nvme directory", Dir: at, Suspend: SuspendTime, Log: log}}
	d.Budget.Max = bytes
	d.mu.lasting, d.mu.undropped = make(map[string]bool), make(map[uint64]bool)
	open := func(w *slowdisk.Work) (place *diskdir.Place, err error) {
		err = w.Do(func() (err error) {
			if _, err = Known(at, note); err == nil {
				err = meta.MakeDir(at)
			}
			if err == nil {
				place, err = diskdir.Open(filepath.Join(at, "pool-"+self), true)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return place, each(w, place.Root, ".", func(_ string, bytes int64) error {
			d.Budget.Add(bytes)
			return nil
		})
	}
	var err error
	d.place, err = slowdisk.Run(context.Background(), &d.health.Disk, openPatience, open, func(late *diskdir.Place) { late.Close() })
	switch {
	case err == slowdisk.ErrSilent:
		err = ErrSilent
	case errors.Is(err, meta.ErrBusy): // other nodes have other places there
		err = meta.Worded(meta.ErrBusy, "a rankfs that has the id of this node, %s, uses it; unmount that, or, if its state directory is a copy of this one's, name an empty one with --state", self)
	}
	if err != nil {
		return nil, fmt.Errorf("directory of the shuffle pool, %s: %w", at, err) // the place goes with the garbage
	}
	remembers := slowdisk.Once(func() (readOnly, err error) { return d.place.Writable(), remember(d.place.Root, note) })
	readOnly, err := slowdisk.Run(context.Background(), &d.health.Disk, openPatience, remembers, nil)
	if readOnly != nil {
		d.health.Fail(readOnly, false)
	}
	if err != nil { // as one of the release before that takes no writes now
		log.Warn("a later daemon may take another directory for that of the shuffle pool", "dir", at, "cause", err)
	}
	return d, nil
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
func (d *Disk) Take(bytes int64) bool { return d.health.Suspended() == nil && d.Budget.Count(bytes) }

// Room is what is used, and what may be.
func (d *Disk) Room() (used, bytes int64) {
	used, _ = d.Budget.Use()
	return used, d.Budget.Max
}

// Close closes the directory. The files stay.
func (d *Disk) Close() error { return d.place.Close() }

// Free is the number of bytes that the disk would take now.
func (d *Disk) Free() int64 {
	if d.health.Suspended() != nil {
		return 0
	}
	return max(0, d.Budget.Left())
}

// Failed notes an error of writing that is one of the disk, and is why the disk failed; nil if it is
// another error. That something is not found is one of the disk where its directory is gone, or
// where it does not answer: the cause is ErrGone or ErrSilent, whichever is so. The disk is
// suspended then, so that only calls under way can fail still. Memory, where d is nil, does not fail.
func (d *Disk) Failed(err error) (cause error) {
	if d == nil {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		_, err = Ask(context.Background(), d, func() (struct{}, error) { return struct{}{}, d.place.Probe() })
	}
	is := func(cause error) bool { return errors.Is(err, cause) }
	if !slices.ContainsFunc([]error{unix.EIO, unix.EROFS, unix.ENOSPC, ErrSilent, diskdir.ErrGone}, is) {
		return nil
	}
	d.health.Fail(err, false)
	if err == diskdir.ErrGone {
		return ErrGone
	}
	return err
}

// Jobs are the numbers of those that have a directory.
func (d *Disk) Jobs() (numbers []uint64) {
	entries, _ := fs.ReadDir(d.place.Root.FS(), ".")
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
	root, err := slowdisk.Run(context.Background(), &d.health.Disk, openPatience, open, func(late *os.Root) { late.Close() })
	return root, d.answer(err)
}

func (d *Disk) openJob(number uint64) (*os.Root, error) {
	name := strconv.FormatUint(number, 10)
	root, err := d.place.Root.OpenRoot(name) // so that what is there is read from a disk that takes no writes
	if !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	if err = d.place.Root.Mkdir(name, 0700); err == nil {
		err = durable.SyncDir(d.place.Root.Name())
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return d.place.Root.OpenRoot(name)
}

// Drop removes the directory of a job, some of whose files may be in use still. If the disk does
// not answer, DropAgain tries once more.
func (d *Disk) Drop(number uint64, used func(file string) bool) error {
	name := strconv.FormatUint(number, 10)
	err := d.Remove(d.place.Root, name, func(file string) bool { return used(strings.TrimPrefix(file, name+"/")) })
	d.mu.Lock()
	defer d.mu.Unlock()
	if delete(d.mu.undropped, number); err != nil {
		d.mu.undropped[number] = true
	}
	return err
}

// Unused reports no file as used.
func Unused(string) bool { return false }

// DropAgain tries once more to remove the directories that Drop could not, and reports whether one
// is left.
func (d *Disk) DropAgain() bool {
	d.mu.Lock()
	stay := slices.Collect(maps.Keys(d.mu.undropped))
	d.mu.Unlock()
	return slices.ContainsFunc(stay, func(number uint64) bool { return d.Drop(number, Unused) != nil })
}

// Remove removes a directory below root. Files in use are not taken off the budget: their writers
// do that.
func (d *Disk) Remove(root *os.Root, name string, used func(file string) bool) error {
	return d.Do(context.Background(), func(w *slowdisk.Work) error {
		err := each(w, root, name, func(file string, bytes int64) error {
			counted := !used(file)
			err := root.Remove(file)
			if err == nil && counted {
				d.Budget.Add(-bytes)
			}
			return err
		})
		d.forget(filepath.Join(root.Name(), name))
		return errors.Join(err, w.Do(func() error { return root.RemoveAll(name) }))
	})
}

// Do has work done on the disk, until the disk is silent for too long, or ctx ends. Where d is nil,
// the caller does it.
func (d *Disk) Do(ctx context.Context, work func(*slowdisk.Work) error) error {
	if d == nil {
		return work(nil)
	}
	_, err := slowdisk.Run(ctx, &d.health.Disk, patience, slowdisk.Plain(work), nil)
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

// Ask makes a system call that reads the disk, and waits for it no longer than patience. If d is nil
// the caller makes it. A file that is opened too late is closed by the garbage collector. What is not
// found while the directory is gone is ErrGone, and the disk is suspended.
func Ask[T any](ctx context.Context, d *Disk, call func() (T, error)) (T, error) {
	if d == nil {
		return call()
	}
	says, err := slowdisk.Run(ctx, &d.asks, patience, slowdisk.Once(func() (T, error) {
		says, err := call()
		if errors.Is(err, fs.ErrNotExist) && d.place.There() == diskdir.ErrGone {
			d.Failed(ErrGone)
			err = ErrGone
		}
		return says, err
	}), nil)
	if err == slowdisk.ErrRefused { // since it did not answer before
		err = ErrSilent
	}
	return says, d.answer(err)
}

// Lasts reports whether the name of a directory is known to last, from now on if so.
func (d *Disk) Lasts(dir string, now bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now {
		d.mu.lasting[dir] = true
	}
	return d.mu.lasting[dir]
}

// Rename renames a file. The bytes of one that had the name `to` are counted no more.
func (d *Disk) Rename(from, to string) error {
	d.naming.Lock()
	defer d.naming.Unlock()
	was, missing := os.Lstat(to)
	err := unix.Rename(from, to)
	if err == nil && missing == nil {
		d.Budget.Add(-Blocks(was.Size()))
	}
	return err
}

// forget says that a directory is gone.
func (d *Disk) forget(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.mu.lasting, func(one string, _ bool) bool { return one == dir || strings.HasPrefix(one, dir+"/") })
}

// ErrFull is the error of a disk that takes no writes.
var ErrFull = meta.Worded(meta.ErrNoSpace, "the disk of the shuffle pool is full, or has failed: give --pool-nvme a larger SIZE, or remove jobs")

var errFullGone = meta.Worded(ErrFull, "disk of the shuffle pool: %w", diskdir.ErrGone)

// Full is ErrFull, and says of a directory that is gone that it is.
func (d *Disk) Full() error {
	if errors.Is(d.health.Suspended(), diskdir.ErrGone) {
		return errFullGone
	}
	return ErrFull
}

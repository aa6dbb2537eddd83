package disks

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A place is where a directory's path led when it was opened. What is in it is reached
// by root alone, even if the path means another place by then.
//
// No lock guards it: it does not change, but for its counters. All of its methods but
// blocks, seen and temporary ask the disk, and may wait for it.
type place struct {
	root    *os.Root
	parts   string // how names of unfinished files begin
	lock    *os.File
	origin  origin
	ino     uint64
	block   int64
	pending *atomic.Int64 // bytes to be written on this file system that have no blocks yet
	most    atomic.Int64  // that the directory may use as its file system was found last
	serial  atomic.Uint64 // of the last unfinished file
	listed  chan struct{} // closed when its names have been seen
}

// An origin has the marks by which a directory that is gone is known again.
type origin struct {
	dev     uint64
	mounted bool // the very directory is where its file system is mounted
}

// fileSystems are shared by directories: what one is about to write is not
// free for another. mu guards the map; what is pending is counted without it.
type fileSystems struct {
	mu      sync.Mutex
	pending map[uint64]*atomic.Int64
}

func (f *fileSystems) of(dev uint64) *atomic.Int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending[dev] == nil {
		f.pending[dev] = new(atomic.Int64)
	}
	return f.pending[dev]
}

// partPrefix begins the names of unfinished files. Those of another place are
// removed: of another daemon, which is gone if it cannot hold the lock, or of this
// one before the disk failed, when it could not remove them.
const partPrefix = ".part-"

// lockName is the file by which a place is of one process alone.
const lockName = ".lock"

// openPlace opens the place of a path, for this process alone.
func openPlace(path string, create bool, systems *fileSystems) (*place, error) {
	if create {
		if err := meta.MakeDir(path); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	p := &place{root: root, parts: partPrefix + rand.Text() + "-", listed: make(chan struct{})}
	p.most.Store(math.MaxInt64)
	if err := p.fill(systems); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *place) fill(systems *fileSystems) (err error) {
	// Opened to read, or the disk could not be turned read-only under us.
	p.lock, err = p.root.OpenFile(lockName, os.O_RDONLY|os.O_CREATE, 0600)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // as in /proc, /sys
		return meta.Worded(meta.ErrInvalid, "no file can be made in it; name a directory that this user can make and write to")
	}
	if err != nil {
		return err
	}
	if err := lock(p.lock); err != nil {
		return err
	}
	self, err := p.root.Stat(".")
	if err != nil {
		return err
	}
	p.origin.dev, p.ino = identity(self)
	p.origin.mounted = isMounted(p.root.Name(), p.origin.dev)
	p.pending = systems.of(p.origin.dev)
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(p.lock.Fd()), &s); err != nil {
		return err
	}
	p.block = max(s.Bsize, 512)
	return nil
}

func lock(f *os.File) error {
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return fmt.Errorf("%w: another rankfs uses it; give each daemon a directory of its own", meta.ErrBusy)
	}
	return nil
}

// tryPlace says why a path could not be opened as a place now, and makes nothing. One that was
// a place before, and is not to be written to now, is read.
func tryPlace(path string) (spot, error) {
	if err := meta.MayMakeDir(path); err != nil {
		return spot{}, err
	}
	f, err := os.Open(filepath.Join(path, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		err = meta.MayMakeIn(path)
	} else if err == nil {
		defer f.Close()
		err = lock(f)
	}
	if err != nil {
		return spot{}, err
	}
	return spotOf(path)
}

// A spot is where a path leads: to a directory, or to a name in one that is to be made.
type spot struct {
	dev, ino uint64
	name     string
}

func spotOf(path string) (s spot, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.name = filepath.Base(path)
		info, err = os.Stat(filepath.Dir(path))
	}
	if err != nil {
		return spot{}, err
	}
	s.dev, s.ino = identity(info)
	return s, nil
}

// writable says why nothing can be made in the place.
func (p *place) writable() error {
	f, err := p.root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Faccessat(int(f.Fd()), ".", unix.W_OK|unix.X_OK, 0); err != nil {
		return meta.Worded(err, "%s: what it has is read, and nothing is written there", meta.WhyNot(err))
	}
	return nil
}

func (p *place) close() {
	if p.lock != nil {
		p.lock.Close()
	}
	p.root.Close()
}

// open opens a file, and nothing else that has its name: a named pipe would
// have it wait, a link lead elsewhere.
func (p *place) open(name string) (*os.File, error) {
	f, err := p.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		if err = Affordable(int(f.Fd())); err == nil {
			return f, nil
		}
		f.Close()
		return nil, err
	}
	if info, other := p.root.Lstat(name); other == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is %v", meta.ErrCorrupt, info.Mode())
	}
	return nil, err
}

// blocks are the bytes that a file of that size takes, but for the map of its
// blocks.
func (p *place) blocks(size int64) int64 {
	if size > 1<<62 {
		return size
	}
	return (size + p.block - 1) / p.block * p.block
}

// lack is the number of bytes that the file system will lack of its floor, where the directory
// uses so many.
func (p *place) lack(floor Floor, used int64) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(p.lock.Fd()), &s); err != nil {
		return 0, err
	}
	lack := floor.of(int64(s.Blocks)*s.Bsize) + p.pending.Load() - int64(s.Bavail)*s.Bsize
	p.most.Store(used - lack)
	return lack, nil
}

// temporary is a name for an unfinished file.
func (p *place) temporary() string { return p.parts + strconv.FormatUint(p.serial.Add(1), 10) }

// seen reports whether all names in the place have been looked at.
func (p *place) seen() bool {
	select {
	case <-p.listed:
		return true
	default:
		return false
	}
}

// probe reports whether path still leads to the place, and the disk answers.
func (p *place) probe(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errGone
	}
	if err != nil {
		return err
	}
	if dev, ino := identity(info); dev != p.origin.dev || ino != p.ino {
		return errGone
	}
	f, err := p.root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.ReadDir(1)
	return err
}

// mayReturn makes the directory again if it was removed. It refuses one on another
// disk, or where only the disk's empty mount point is left: slabs there would take
// another file system's room.
func (o *origin) mayReturn(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		above, err := os.Stat(filepath.Dir(path))
		if err != nil {
			return errGone
		}
		if dev, _ := identity(above); dev != o.dev || o.mounted {
			return errGone
		}
		return os.Mkdir(path, 0700)
	}
	if err != nil {
		return err
	}
	if dev, _ := identity(info); o.mounted != isMounted(path, dev) || !o.mounted && dev != o.dev {
		return errGone
	}
	return nil
}

func identity(info fs.FileInfo) (dev, ino uint64) {
	s := info.Sys().(*unixStat)
	return s.Dev, s.Ino
}

// isMounted reports whether path, which is on dev, is where dev is mounted.
func isMounted(path string, dev uint64) bool {
	above, err := os.Stat(filepath.Join(path, ".."))
	if err != nil {
		return false
	}
	other, _ := identity(above)
	return other != dev
}

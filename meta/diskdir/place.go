package diskdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A Place is where a directory's path led when it was opened, for this process alone. What
// is in it is reached by Root alone, even if the path means another place by then. It does not
// change. All of its methods ask the disk, and may wait for it.
type Place struct {
	Root    *os.Root
	Dev     uint64 // of its file system
	ino     uint64
	mounted bool // the very directory is where its file system is mounted
	lock    *os.File
}

// ErrGone is why a directory is not used whose path leads to another place now, or to none.
var ErrGone = errors.New("the directory is gone, or something else is mounted there; bring it back, or mount without it")

// lockName is the file by which a place is of one process alone.
const lockName = ".lock"

// Open opens the place of a path, where a directory is made if that is asked for.
func Open(path string, create bool) (*Place, error) {
	if create {
		if err := meta.MakeDir(path); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	p := &Place{Root: root}
	if err := p.own(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// own makes the place this process's own, and notes what it is known by.
func (p *Place) own() (err error) {
	// Opened to read, or the disk could not be turned read-only under us; and made only where there
	// is none, so that a disk that takes no writes for now is not asked for one.
	p.lock, err = p.Root.Open(lockName)
	if errors.Is(err, fs.ErrNotExist) {
		p.lock, err = p.Root.OpenFile(lockName, os.O_RDONLY|os.O_CREATE, 0600)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // as in /proc, /sys
		return meta.Worded(meta.ErrInvalid, "no file can be made in it; name a directory that this user can make and write to")
	}
	if err != nil {
		return err
	}
	if err := lock(p.lock); err != nil {
		return err
	}
	self, err := p.Root.Stat(".")
	if err != nil {
		return err
	}
	p.Dev, p.ino = identity(self)
	p.mounted = isMounted(p.Root.Name(), p.Dev)
	return nil
}

func lock(f *os.File) error {
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return fmt.Errorf("%w: another rankfs uses it; give each daemon a directory of its own", meta.ErrBusy)
	}
	return nil
}

// A Spot is where a path leads: to a directory, or to a name in one that is to be made.
type Spot struct {
	dev, ino uint64
	name     string
}

// Try says why a path could not be opened as a place now, and makes nothing. One that was
// a place before, and is not to be written to now, is read.
func Try(path string) (at Spot, err error) {
	if err := meta.MayMakeDir(path); err != nil {
		return at, err
	}
	f, err := os.Open(filepath.Join(path, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		err = meta.MayMakeIn(path)
	} else if err == nil {
		defer f.Close()
		err = lock(f)
	}
	if err != nil {
		return at, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		at.name = filepath.Base(path)
		info, err = os.Stat(filepath.Dir(path))
	}
	if err == nil {
		at.dev, at.ino = identity(info)
	}
	return at, err
}

// FileSystem is what its file system says of itself.
func (p *Place) FileSystem() (s unix.Statfs_t, err error) {
	err = unix.Fstatfs(int(p.lock.Fd()), &s)
	return s, err
}

// Writable says why nothing can be made in the place.
func (p *Place) Writable() error {
	f, err := p.Root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Faccessat(int(f.Fd()), ".", unix.W_OK|unix.X_OK, 0); err != nil {
		return meta.Worded(err, "%s: what it has is read, and nothing is written there", meta.WhyNot(err))
	}
	return nil
}

// There reports whether the path still leads to the place.
func (p *Place) There() error {
	info, err := os.Stat(p.Root.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return ErrGone
	}
	if err != nil {
		return err
	}
	if dev, ino := identity(info); dev != p.Dev || ino != p.ino {
		return ErrGone
	}
	return nil
}

// Probe is There, and reports whether the disk answers.
func (p *Place) Probe() error {
	if err := p.There(); err != nil {
		return err
	}
	f, err := p.Root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.ReadDir(1)
	return err
}

// Close lets go of the place, which another process may have then.
func (p *Place) Close() error {
	err := p.Root.Close()
	if p.lock != nil {
		err = errors.Join(err, p.lock.Close())
	}
	return err
}

// MayReturn makes the directory of a place that was closed again if it was removed. It refuses
// one on another disk, or where only the disk's empty mount point is left: files there would take
// another file system's room.
func (p *Place) MayReturn() error {
	path := p.Root.Name()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		above, err := os.Stat(filepath.Dir(path))
		if err != nil {
			return ErrGone
		}
		if dev, _ := identity(above); dev != p.Dev || p.mounted {
			return ErrGone
		}
		return os.Mkdir(path, 0700)
	}
	if err != nil {
		return err
	}
	if dev, _ := identity(info); p.mounted != isMounted(path, dev) || !p.mounted && dev != p.Dev {
		return ErrGone
	}
	return nil
}

func identity(info fs.FileInfo) (dev, ino uint64) {
	s := info.Sys().(*syscall.Stat_t)
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

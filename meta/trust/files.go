package trust

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/durable"
)

// maxFile is far more than a key or a certificate has.
const maxFile = 16 << 10

const (
	secretMode = 0o600
	publicMode = 0o644
)

// A keyDir is the directory of keys and certificates. It is entered anew for
// each use, so that nothing has to be closed, and through an os.Root, so that
// no link leads out of it.
type keyDir string

// open enters the directory, which only its owner may write to.
func (v keyDir) open() (*os.Root, error) {
	root, err := os.OpenRoot(string(v))
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = owned(string(v), info, 0o022)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// owned refuses what belongs to another user, or lets others do what the bits
// of forbidden say.
func owned(path string, info fs.FileInfo, forbidden fs.FileMode) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return meta.Worded(meta.ErrDenied, "%s belongs to another user: chown it to the user of the daemon", path)
	}
	if mode := info.Mode().Perm(); mode&forbidden != 0 {
		return meta.Worded(meta.ErrDenied, "%s has mode %04o, so others may have been at it: chmod go= it if you know that they were not",
			path, mode)
	}
	return nil
}

// read returns a whole file. A file that only its owner may read is refused
// if others could. A missing file is meta.ErrNotExist.
func (v keyDir) read(name string, mode fs.FileMode) ([]byte, error) {
	data, err := v.readFile(name, mode)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", v.path(name), meta.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", v.path(name), err)
	}
	return data, nil
}

func (v keyDir) readFile(name string, mode fs.FileMode) ([]byte, error) {
	root, err := v.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("no file of at most %d bytes: %w", maxFile, meta.ErrCorrupt)
	}
	forbidden := fs.FileMode(0o022)
	if mode == secretMode {
		forbidden = 0o077
	}
	if err := owned(v.path(name), info, forbidden); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

func (v keyDir) path(name string) string { return filepath.Join(string(v), name) }

// write makes name hold data, or leaves it as it was: there is no moment at
// which a crash leaves a part. The directory is made if there is none.
func (v keyDir) write(name string, data []byte, mode fs.FileMode) error {
	if err := v.writeFile(name, data, mode); err != nil {
		return fmt.Errorf("write %s: %w", v.path(name), err)
	}
	return nil
}

func (v keyDir) writeFile(name string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(string(v), 0o700); err != nil {
		return err
	}
	root, err := v.open()
	if err != nil {
		return err
	}
	defer root.Close()
	return durable.WriteIn(root, name, data, mode)
}

// remove takes a file away; that there is none is fine.
func (v keyDir) remove(name string) error {
	root, err := v.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", v.path(name), err)
	}
	defer root.Close()
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", v.path(name), err)
	}
	return durable.SyncDir(root.Name())
}

// shred is remove for a secret: its bytes are overwritten first, so that they cannot be
// found on the disk.
func (v keyDir) shred(name string) error {
	if err := v.blank(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write over %s: %w", v.path(name), err)
	}
	return v.remove(name)
}

func (v keyDir) blank(name string) error {
	root, err := v.open()
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		_, err = f.Write(make([]byte, min(info.Size(), maxFile)))
	}
	return errors.Join(err, f.Sync(), f.Close())
}

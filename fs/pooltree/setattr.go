package pooltree

import (
	"errors"
	"os"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// resize gives a file, or the one that a handle is of, the size that in says, if it says one.
func resize(root opener, name string, h fusefs.FileHandle, in *fuse.SetAttrIn) error {
	size, ok := in.GetSize()
	if !ok {
		return nil
	}
	if w, ok := h.(*written); ok {
		root, name = openFiles{}, w.number()
	}
	f, err := root.OpenFile(name, os.O_WRONLY, 0)
	if err == nil {
		err = errors.Join(f.Truncate(int64(size)), f.Close())
	}
	return err
}

// setAttributes changes what else in says of a file, or of the one that a handle is of.
func setAttributes(root changer, name string, h fusefs.FileHandle, in *fuse.SetAttrIn) error {
	if w, ok := h.(*written); ok {
		root, name = openFiles{}, w.number()
	}
	if mode, ok := in.GetMode(); ok {
		if err := root.Chmod(name, permissions(mode)); err != nil {
			return err
		}
	}
	uid, hasUID := in.GetUID()
	gid, hasGID := in.GetGID()
	if hasUID || hasGID {
		who := [2]int{-1, -1}
		if hasUID {
			who[0] = int(uid)
		}
		if hasGID {
			who[1] = int(gid)
		}
		if err := root.Lchown(name, who[0], who[1]); err != nil {
			return err
		}
	}
	atime, hasAtime := in.GetATime()
	mtime, hasMtime := in.GetMTime()
	if !hasAtime && !hasMtime {
		return nil
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Nsec: unix.UTIME_OMIT}}
	if hasAtime {
		times[0] = timespec(atime)
	}
	if hasMtime {
		times[1] = timespec(mtime)
	}
	return root.Lutimes(name, times)
}

func timespec(t time.Time) unix.Timespec {
	return unix.Timespec{Sec: t.Unix(), Nsec: int64(t.Nanosecond())}
}

package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A walk visits a tree in the bytewise order of its slash-separated paths,
// in which a directory has a slash at its end. Directories are entered
// through an os.Root, one at a time, so no link leads out of the tree.
type walk struct {
	root    *os.Root
	visit   func(path string, st stamp) error // regular files, and directories before their entries
	sum     hash.Hash                         // of all that was visited
	newest  int64                             // ctime
	skipped map[string]int                    // by kind
}

func newWalk(root *os.Root, visit func(path string, st stamp) error) *walk {
	return &walk{root: root, visit: visit, sum: sha256.New(), skipped: make(map[string]int)}
}

// fingerprint identifies what was visited.
func (w *walk) fingerprint() string {
	return "files,sha256=" + hex.EncodeToString(w.sum.Sum(nil))
}

// An entry of a directory; the name of one that is a directory ends in a slash.
type entry struct {
	name string
	st   stamp
}

// all visits the tree.
func (w *walk) all(ctx context.Context) error { return w.dir(ctx, "", nil) }

// dir visits the directory at path, which is empty for the root and ends in a
// slash otherwise, and all that is below it. The names of one directory are
// in memory while it is being walked.
func (w *walk) dir(ctx context.Context, path string, listed *stamp) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	self, entries, err := w.list(path)
	if err != nil {
		return err
	}
	if listed != nil && self.ino != listed.ino {
		return fmt.Errorf("directory %q %w", path, errReplaced)
	}
	if err := w.meet(path, self); err != nil {
		return err
	}
	for _, e := range entries {
		if e.st.isDir() {
			err = w.dir(ctx, path+e.name, &e.st)
		} else {
			err = w.meet(path+e.name, e.st)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) meet(path string, st stamp) error {
	w.newest = max(w.newest, st.ctime)
	var b []byte
	b = binary.LittleEndian.AppendUint32(b, uint32(len(path)))
	b = append(b, path...)
	size := st.size
	if st.isDir() {
		size = 0 // the disk space of a directory is not content
	}
	for _, v := range []uint64{st.ino, uint64(size), uint64(st.mtime), uint64(st.ctime)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	w.sum.Write(b)
	return w.visit(path, st)
}

func (w *walk) list(path string) (self stamp, entries []entry, err error) {
	f, err := w.root.OpenFile(cmp.Or(path, "."), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return self, nil, explain(err)
	}
	defer f.Close()
	// The stamp comes before the names: a name that comes later changes it.
	if self, err = statFile(f); err != nil {
		return self, nil, err
	}
	names, err := f.ReadDir(-1)
	if err != nil {
		return self, nil, err
	}
	for _, name := range names {
		if kind, ok := special[name.Type()]; ok {
			w.skipped[kind]++
			continue
		}
		var st unix.Stat_t
		err := retry(func() error {
			return unix.Fstatat(int(f.Fd()), name.Name(), &st, unix.AT_SYMLINK_NOFOLLOW)
		})
		if err != nil {
			return self, nil, &fs.PathError{Op: "stat", Path: path + name.Name(), Err: err}
		}
		e := entry{name.Name(), stampOf(&st)}
		switch {
		case e.st.isDir():
			e.name += "/"
		case !e.st.isRegular():
			w.skipped["other"]++
			continue
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return self, entries, nil
}

// special are the kinds of files that are never served nor followed.
var special = map[fs.FileMode]string{
	fs.ModeSymlink:                    "symbolic links",
	fs.ModeNamedPipe:                  "fifos",
	fs.ModeSocket:                     "sockets",
	fs.ModeDevice:                     "devices",
	fs.ModeDevice | fs.ModeCharDevice: "devices",
	fs.ModeIrregular:                  "other",
}

// left lists the kinds of entries that the walk skipped, with their numbers.
func (w *walk) left() string {
	var words []string
	for kind, n := range w.skipped {
		words = append(words, fmt.Sprintf("%s: %d", kind, n))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// moved reports whether err is one that an open gives when the path has been removed,
// or replaced by another kind of file, since it was listed.
func moved(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		// os.Root itself refused: a link leads out of the tree.
		var path *os.PathError
		return errors.As(err, &path) || errors.Is(err, errReplaced)
	}
	switch errno {
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENXIO:
		return true
	}
	return false
}

var errReplaced = errors.New("was replaced while it was listed")

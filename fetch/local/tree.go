package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"rankfs/fetch/index"
	"rankfs/meta"
)

// A Tree is a source whose records are the regular files below a directory,
// in the bytewise order of their paths. Hidden files are among them; links,
// devices, fifos and sockets are passed over, and a note counts them.
//
// Its index lists the files first and the directories, with a slash at their
// ends, after them: they hold no record, but a changed one means another tree.
type Tree struct {
	path string

	// Set by Attach.
	root  *os.Root
	index *index.Index
	files uint32 // how many of the index's files are files
	open  *descriptors

	next    atomic.Uint32 // directory to check
	changed atomic.Uint64 // one more than the id of the entry last found changed; 0: none
}

// OpenTree opens a directory. Each file in it is a record.
func OpenTree(path string) (*Tree, error) {
	st, err := statPath(path)
	if err != nil {
		return nil, fmt.Errorf("source %q: %w", path, err)
	}
	if !st.isDir() {
		return nil, fmt.Errorf("source %q %w: it is no directory", path, meta.ErrInvalid)
	}
	return &Tree{path: path}, nil
}

func (s *Tree) openRoot() (*os.Root, error) {
	root, err := os.OpenRoot(s.path)
	if err != nil {
		return nil, s.problem(explain(err))
	}
	return root, nil
}

// problem is err, marked as stale if something is not where it was.
func (s *Tree) problem(err error) error {
	if !moved(err) {
		return fmt.Errorf("source %q: %w", s.path, err)
	}
	path, why := s.path, meta.WhyNot(err)
	var at *os.PathError
	if errors.As(err, &at) && !filepath.IsAbs(at.Path) { // something in the tree, by its path there
		path = filepath.Join(path, at.Path)
	}
	switch missing := errors.Is(err, unix.ENOENT); {
	case missing && path == s.path:
		return gone(path)
	case missing:
		why = "it is gone"
	}
	return stale(path, why)
}

// Fingerprint implements fetch.Source. It looks at every file of the tree.
func (s *Tree) Fingerprint(ctx context.Context) (string, error) {
	root, err := s.openRoot()
	if err != nil {
		return "", err
	}
	defer root.Close()
	return s.fingerprint(ctx, root)
}

func (s *Tree) fingerprint(ctx context.Context, root *os.Root) (string, error) {
	w := newWalk(root, func(string, stamp) error { return nil })
	if err := w.all(ctx); err != nil {
		return "", s.problem(err)
	}
	return w.fingerprint(), nil
}

// Scan implements fetch.Source. It walks the tree twice; the index is of a version
// only if the second walk finds the same files.
func (s *Tree) Scan(ctx context.Context, b *index.Builder, done func(bytes, total int64)) (string, error) {
	root, err := s.openRoot()
	if err != nil {
		return "", err
	}
	defer root.Close()
	w, err := s.list(ctx, root, b, done)
	if err != nil {
		return "", s.problem(err)
	}
	if err := awaitStamp(ctx, w.newest); err != nil {
		return "", err
	}
	again, err := s.Fingerprint(ctx)
	if err != nil {
		return "", err
	}
	if again != w.fingerprint() {
		return "", stale(s.path, "files came, went or changed while they were listed")
	}
	return again, nil
}

func (s *Tree) list(ctx context.Context, root *os.Root, b *index.Builder, done func(bytes, total int64)) (*walk, error) {
	var dirs []index.File
	add := &adder{b: b}
	hinted := false // that an LMDB is among the files; once, as there may be many
	w := newWalk(root, func(path string, st stamp) error {
		if st.isDir() {
			dirs = append(dirs, index.File{Path: path, Stamp: st.inTree()})
			done(b.Bytes(), b.Bytes())
			return nil
		}
		if filepath.Base(path) == "data.mdb" && !hinted {
			hinted = true
			b.Note("lmdb", fmt.Sprintf("%s is a record as a whole; to read the values in it create the dataset from lmdb:%s",
				path, filepath.Dir(filepath.Join(s.path, path))))
		}
		add.file = b.AddFile(index.File{Path: path, Size: st.size, Stamp: st.inTree()})
		return add.add(0, st.size)
	})
	if err := w.all(ctx); err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		b.AddFile(dir)
	}
	if left := w.left(); left != "" {
		b.Note("left out", "not served nor followed: "+left)
	}
	done(b.Bytes(), b.Bytes())
	return w, nil
}

// Attach implements fetch.Source. It looks at every file of the tree.
func (s *Tree) Attach(ctx context.Context, x *index.Index, fingerprint string) error {
	root, err := s.openRoot()
	if err != nil {
		return err
	}
	if err := s.attach(ctx, root, x, fingerprint); err != nil {
		root.Close()
		return err
	}
	return nil
}

func (s *Tree) attach(ctx context.Context, root *os.Root, x *index.Index, fingerprint string) error {
	now, err := s.fingerprint(ctx, root)
	if err != nil {
		return err
	}
	if now != fingerprint {
		return stale(s.path, "files came, went or changed")
	}
	files := sort.Search(x.Files(), func(i int) bool { return isDirPath(x.File(uint32(i)).Path) })
	if files == x.Files() {
		return fmt.Errorf("index of %q %w: it is that of another source", s.path, meta.ErrCorrupt)
	}
	s.root, s.index, s.files = root, x, uint32(files)
	s.open = &descriptors{open: s.openFile}
	return nil
}

// isDirPath reports whether a path in the index is that of a directory. The
// root has an empty one.
func isDirPath(path string) bool { return path == "" || strings.HasSuffix(path, "/") }

// dirsPerCheck bounds the time of a Check: about 100 us.
const dirsPerCheck = 64

// Check implements fetch.Source. It looks at the entry that a Check or a Read last
// found changed, at the root and, in turn, at some of the other directories. It does
// not notice a file written in place until a Read of that file does; from then on
// the source is stale.
func (s *Tree) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.checkChanged(); err != nil {
		return err
	}
	now, err := statPath(s.path)
	if err != nil {
		return s.problem(err)
	}
	if err := s.compare(s.files, now); err != nil {
		return err
	}
	dirs := uint32(s.index.Files()) - s.files - 1 // without the root
	n := min(dirs, dirsPerCheck)
	first := s.next.Add(n) // in one go: checks at the same time must not share a round
	for i := range n {
		if err := s.checkDir(s.files + 1 + (first+i)%dirs); err != nil {
			return err
		}
	}
	return nil
}

// checkChanged looks again at the entry that was found changed. A file that was only
// unreachable for a while, as on an unmounted file system, may be back unchanged.
func (s *Tree) checkChanged() error {
	note := s.changed.Load()
	if note == 0 {
		return nil
	}
	if err := s.checkOne(uint32(note - 1)); err != nil {
		return err
	}
	s.changed.CompareAndSwap(note, 0)
	return nil
}

// checkDir looks at a directory, and remembers that it has changed: the next
// check is of others.
func (s *Tree) checkDir(id uint32) error {
	err := s.checkOne(id)
	s.note(id, err)
	return err
}

// checkOne compares a file or directory with the index.
func (s *Tree) checkOne(id uint32) error {
	info, err := s.root.Lstat(strings.TrimSuffix(s.index.File(id).Path, "/"))
	if err != nil {
		return s.problem(err)
	}
	return s.compare(id, stampOfInfo(info))
}

// note remembers the entry as changed if err is stale.
func (s *Tree) note(id uint32, err error) {
	if errors.Is(err, meta.ErrStale) {
		s.changed.Store(uint64(id) + 1)
	}
}

// compare returns a stale error if now differs from the stamp that the index has of
// the file.
func (s *Tree) compare(id uint32, now stamp) error {
	if f := s.index.File(id); now.inTree() != f.Stamp || !now.isDir() && now.size != f.Size || now.isDir() != isDirPath(f.Path) {
		return stale(s.path+"/"+f.Path, "it was written, renamed, linked or replaced")
	}
	return nil
}

// Read implements fetch.Source.
func (s *Tree) Read(ctx context.Context, extents []index.Extent, dst []byte) error {
	for len(extents) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, size := sameFile(extents)
		if err := s.read(ctx, extents[:n], dst[:size]); err != nil {
			s.note(extents[0].File, err)
			return err
		}
		extents, dst = extents[n:], dst[size:]
	}
	return nil
}

// sameFile counts the extents that are in the file of the first one.
func sameFile(extents []index.Extent) (n int, bytes int64) {
	for ; n < len(extents) && extents[n].File == extents[0].File; n++ {
		bytes += extents[n].Len
	}
	return n, bytes
}

func (s *Tree) read(ctx context.Context, extents []index.Extent, dst []byte) error {
	d, err := s.open.get(extents[0].File)
	if err != nil {
		return err
	}
	defer s.open.put(d)
	return d.read(ctx, extents, dst, nil)
}

// openFile opens a file of the index and makes sure that it has not changed.
func (s *Tree) openFile(id uint32) (*version, error) {
	path := s.index.File(id).Path
	f, err := s.root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, s.whyNot(id, explain(err))
	}
	st, err := statFile(f)
	if err == nil {
		err = s.compare(id, st)
	}
	if err == nil && !st.isRegular() {
		err = stale(s.path+"/"+path, "something of another kind took its place")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &version{s.path + "/" + path, f, st}, nil
}

// whyNot is the error for a file that cannot be opened: stale if it differs from the
// index, whatever error the kernel gave.
func (s *Tree) whyNot(id uint32, err error) error {
	path := s.index.File(id).Path
	if info, lerr := s.root.Lstat(path); lerr == nil {
		if err := s.compare(id, stampOfInfo(info)); err != nil {
			return err
		}
	} else if moved(lerr) {
		return stale(s.path+"/"+path, "it is gone")
	}
	return fmt.Errorf("source %q: %w", s.path, err)
}

// Close implements fetch.Source.
func (s *Tree) Close() error {
	if s.root == nil {
		return nil
	}
	s.open.close()
	err := s.root.Close()
	s.root = nil
	return err
}

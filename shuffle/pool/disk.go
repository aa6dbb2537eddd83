package pool

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
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

	naming sync.Mutex // before mu; held for the system calls that give a file its name

	mu struct {
		sync.Mutex
		used   int64     // of bytes, in whole blocks
		failed time.Time // when a write has, last

		lasting map[string]bool
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
	is.mu.lasting = make(map[string]bool)
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

// usage is how many bytes files have below a directory.
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
	if d.mu.used+bytes > d.bytes || time.Since(d.mu.failed) < restTime {
		return false
	}
	d.mu.used += bytes
	return true
}

// free is how many bytes it would take now.
func (d *disk) free() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.mu.failed) < restTime {
		return 0
	}
	return max(0, d.bytes-d.mu.used)
}

func (d *disk) give(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.used -= bytes
}

// failed notes an error of writing. While the disk is left alone there are no others, but
// of what was under way.
func (d *disk) failed(err error) {
	if !errors.Is(err, unix.EIO) && !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.ENOSPC) {
		return
	}
	d.mu.Lock()
	again := time.Since(d.mu.failed) < restTime
	d.mu.failed = time.Now()
	d.mu.Unlock()
	if !again {
		d.log.Warn("the disk of the shuffle pool has failed, and is left alone for a while", "dir", d.root.Name(), "for", restTime, "cause", err)
	}
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
	name := strconv.FormatUint(number, 10)
	err := d.root.Mkdir(name, 0700)
	if err == nil {
		err = durable.SyncDir(d.root.Name())
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return d.root.OpenRoot(name)
}

// drop removes the directory of a job.
func (d *disk) drop(number uint64) error {
	name := strconv.FormatUint(number, 10)
	bytes, err := usage(d.root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	d.forget(filepath.Join(d.root.Name(), name))
	if err = errors.Join(err, d.root.RemoveAll(name)); err == nil {
		d.give(bytes)
	}
	return err
}

// A store is one of the places in which a job has maps.
type store struct {
	*os.Root
	disk  *disk // nil: it is in memory, where the kernel counts
	files *mapFiles
}

// Nobody but the daemon names what is in a store, so that each of these is one system call:
// a root would open each of the directories on the way.

func (s store) at(name string) string { return filepath.Join(s.Name(), name) }

// OpenFile is that of a root.
func (s store) OpenFile(name string, flag int, perm os.FileMode) (*os.File, error) {
	return openOwn(s.at(name), flag, perm)
}

// Lstat is that of a root.
func (s store) Lstat(name string) (os.FileInfo, error) { return os.Lstat(s.at(name)) }

// Rename is that of a root, for files.
func (s store) Rename(from, to string) error { return unix.Rename(s.at(from), s.at(to)) }

// Remove is that of a root, for files.
func (s store) Remove(name string) error { return unix.Unlink(s.at(name)) }

// link gives a file that is open another name.
func (s store) link(file *os.File, name string) error {
	return unix.Linkat(int(file.Fd()), "", unix.AT_FDCWD, s.at(name), unix.AT_EMPTY_PATH)
}

// remove removes a file.
func (s store) remove(name string) {
	info, err := s.Lstat(name)
	if err == nil && s.Remove(name) == nil && s.disk != nil {
		s.disk.give(blocks(info.Size()))
	}
}

// removeAll removes a directory.
func (s store) removeAll(name string) {
	bytes := int64(0)
	if s.disk != nil {
		bytes, _ = usage(s.Root, name)
		s.disk.forget(s.at(name))
	}
	s.files.open.below(name)
	if s.RemoveAll(name) == nil && s.disk != nil {
		s.disk.give(bytes)
	}
}

// put writes a map and its table, of which r has the bytes; if lasting so that both are on
// the disk afterwards.
func (s store) put(name string, t table, r io.Reader, lasting bool) error {
	if err := s.MkdirAll(path.Dir(name), 0700); err != nil {
		return err
	}
	err := beside(lasting, func() error { return s.place(name+idx, int64(len(t)), bytes.NewReader(t), lasting, nil) },
		func(table func() error) error { return s.place(name, t.size(), t.check(r, 0), lasting, table) })
	s.files.open.one(name) // what had the name before
	if err != nil || !lasting {
		return err
	}
	return s.sync(path.Dir(name))
}

// beside does one thing and another one, which may wait for it. Files of which both are to last
// do so together: a disk's journal takes as long for one.
func beside(lasting bool, one func() error, other func(done func() error) error) error {
	if !lasting {
		if err := one(); err != nil {
			return err
		}
		return other(func() error { return nil })
	}
	var work sync.WaitGroup
	var failed error
	work.Go(func() { failed = one() })
	done := func() error {
		work.Wait()
		return failed
	}
	err := other(done)
	return cmp.Or(err, done())
}

// place writes a file that has its name once it is whole, and once what it is not to be
// without is done, if there is something. There may be one of that name, with the same bytes.
func (s store) place(name string, size int64, r io.Reader, lasting bool, with func() error) (err error) {
	if s.disk != nil {
		if !s.disk.take(blocks(size)) {
			return errFull
		}
		defer func() {
			if err != nil {
				s.disk.give(blocks(size))
				s.disk.failed(err)
			}
		}()
	} else {
		in, err := s.files.ram.admit(size, r)
		if err != nil {
			return err
		}
		defer in.end()
		r = in
	}
	unfinished := fmt.Sprintf("%s.%08x%s", name, rand.Uint32(), incoming)
	done, err := s.files.use(unfinished) // that it is not swept
	if err != nil {
		return err
	}
	defer done()
	f, err := s.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0400)
	if err != nil {
		return err
	}
	_, err = copyAll(f, r)
	if err == nil && lasting {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil && with != nil {
		err = with()
	}
	if err != nil {
		return errors.Join(err, s.Remove(unfinished))
	}
	if err := s.rename(unfinished, name); err != nil {
		return errors.Join(err, s.Remove(unfinished))
	}
	return nil
}

// placeTable writes the table of a map that is not there yet: until it is, nobody looks for the
// table, which has its name at once. What has the name already is of the same map, or what was
// left of it.
func (s store) placeTable(name string, size int64, r io.Reader) error {
	f, err := s.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0400)
	if errors.Is(err, fs.ErrExist) {
		return s.place(name, size, r, false, nil)
	}
	if err != nil {
		return err
	}
	_, err = copyAll(f, r)
	return errors.Join(err, f.Close())
}

// rename gives a file its name. What has had it before is counted no more.
func (s store) rename(from, to string) error {
	if s.disk == nil {
		return s.Rename(from, to)
	}
	s.disk.naming.Lock()
	defer s.disk.naming.Unlock()
	was, missing := s.Lstat(to)
	err := s.Rename(from, to)
	if err == nil && missing == nil {
		s.disk.give(blocks(was.Size()))
	}
	return err
}

// What a disk says that takes nothing.
var (
	errFull = meta.Worded(meta.ErrNoSpace, "the disk of the shuffle pool is full, or has failed: give --pool-nvme a larger SIZE, or remove jobs")
	errNone = meta.Worded(meta.ErrNoSpace, "the stage has ack=durable, and this node has no disk for the shuffle pool: mount with --pool-nvme DIR:SIZE")
)

// sync has directories last: one, and those above it, which never come again once they went.
func (s store) sync(dir string) error {
	for at := dir; ; at = path.Dir(at) {
		if err := durable.SyncDir(s.at(at)); err != nil {
			return err
		}
		if at == "." || s.disk.lasts(s.at(dir), false) {
			s.disk.lasts(s.at(dir), true)
			return nil
		}
	}
}

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

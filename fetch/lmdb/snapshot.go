package lmdb

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A version identifies a file's content without reading all of it.
//
// A transaction changes txn. Other changes show in the other fields: another file
// moved to the path has another inode, and one copied over the file, perhaps made by
// the same program and so with the same transaction, has another mtime. The device
// is left out, since it may change with a reboot.
// A copy on another machine is another version, to be indexed there.
type version struct {
	txn, root, entries uint64
	page, size         int64
	inode              uint64
	mtime              int64 // nanoseconds
}

const versionFormat = "lmdb txn=%d root=%d entries=%d page=%d size=%d inode=%d mtime=%d"

func (v *version) fields() []any {
	return []any{&v.txn, &v.root, &v.entries, &v.page, &v.size, &v.inode, &v.mtime}
}

func (v version) String() string {
	return fmt.Sprintf(versionFormat, v.txn, v.root, v.entries, v.page, v.size, v.inode, v.mtime)
}

// parseVersion is the inverse of String, for the sake of a message.
func parseVersion(s string) (v version) {
	_, _ = fmt.Sscanf(s, versionFormat, v.fields()...)
	return v
}

// change says in words how now differs from v.
func (v version) change(now version) string {
	var what []string
	if v.inode != now.inode {
		what = append(what, "another file stands at its path")
	}
	if v.txn != now.txn {
		what = append(what, fmt.Sprintf("transaction %d became %d", v.txn, now.txn))
	}
	if v.size != now.size {
		what = append(what, fmt.Sprintf("%d bytes became %d", v.size, now.size))
	}
	if len(what) == 0 {
		what = append(what, "it was written to")
	}
	return strings.Join(what, ", ")
}

// A snapshot is one state of the data file, with the hold that keeps it or the means
// to notice that it is gone.
//
// A writer copies each page that it changes to a free one. Transaction N
// lists the pages of snapshot N-1 that it made superfluous, and a list is
// used up by writer W only if no reader is older than the list and its
// transaction is below W-1. So the first transaction that may overwrite
// a page of snapshot T is T+3, and it begins after T+1 and T+2 wrote their
// meta pages.
//
// Where the lock file can be used, a read-only transaction holds the snapshot:
// a reader that LMDB knows of, for as long as the daemon lives. Commits then do
// no harm and are no change; intact only checks that the hold is still effective.
//
// Elsewhere (no lock file, read-only medium, no permission) nothing is locked.
// If after a copy the meta pages still say T, then T+3 had not begun, and the copy
// is of T. A write that is no transaction shows in the file's mtime, which the
// kernel sets before the new bytes can be read.
//
// Neither sees the writers of another machine on a network file system; LMDB
// does not allow those.
//
// The lock guards what was found of the file's time; the file is looked at without it.
type snapshot struct {
	place
	file    *os.File
	id      fileID
	head    head
	version version
	hold    *hold

	mu struct {
		sync.Mutex
		foreign int64 // a time of the file that no transaction came with, or 0
	}
}

// look reads the newest meta page and then the file's attributes.
func look(f *os.File) (h head, v version, id fileID, err error) {
	if h, err = readHead(f, f.Name()); err != nil {
		return h, v, id, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(int(f.Fd()), &st); err != nil {
		return h, v, id, fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	v = version{h.txn, h.main.root, h.main.entries, h.page, st.Size, st.Ino, st.Mtim.Nano()}
	return h, v, fileID{uint64(st.Dev), st.Ino}, nil
}

// observe looks until the meta page is the same on both sides of the
// attributes, which are then of its time.
func observe(f *os.File) (head, version, fileID, error) {
	for range 100 {
		h, v, id, err := look(f)
		if err != nil {
			return h, v, id, err
		}
		again, err := readHead(f, f.Name())
		if err != nil || h == again {
			return h, v, id, err
		}
	}
	return head{}, version{}, fileID{}, fmt.Errorf("%s: changes too fast to be read: %w", f.Name(), meta.ErrBusy)
}

// openData opens a data file for reading. A named pipe would block.
func openData(at place) (*os.File, error) {
	f, err := os.OpenFile(at.data, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open lmdb: %w", meta.AtPath(at.data, err))
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = meta.Worded(meta.ErrInvalid, "open lmdb: %s cannot be a source: it is not a regular file", at.data)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// take opens the data file and holds its newest snapshot if that can be done.
func take(at place, holds *Holds) (*snapshot, error) {
	f, err := openData(at)
	if err != nil {
		return nil, err
	}
	s := &snapshot{place: at, file: f}
	for range 100 {
		if s.head, s.version, s.id, err = observe(f); err != nil {
			break
		}
		s.hold, _ = holds.hold(at, s.id, s.head) // without one it is stale as soon as a writer changes the file
		if s.hold == nil || s.hold.id == s.head.txn {
			return s, nil
		}
		// A transaction came between. The hold keeps nothing that we know.
		s.hold.release()
		s.hold, err = nil, fmt.Errorf("%s: changes too fast to be held: %w", at.data, meta.ErrBusy)
	}
	f.Close()
	return nil, err
}

func (s *snapshot) stale(format string, args ...any) error {
	return fmt.Errorf("lmdb %s: %w: %w", s.data, fmt.Errorf(format, args...), meta.ErrStale)
}

// intact returns nil if no byte of the snapshot had changed when it was called.
func (s *snapshot) intact() error {
	head, now, _, err := look(s.file)
	if errors.Is(err, meta.ErrCorrupt) {
		return s.stale("its meta pages are gone: %v", err)
	}
	if err != nil {
		return err
	}
	if s.hold == nil {
		if head != s.head || now != s.version {
			return s.stale("%s", s.version.change(now))
		}
		return nil
	}
	if now.size < s.version.size || head.page != s.head.page || head.txn == s.head.txn && head != s.head {
		return s.stale("it was overwritten: %s", s.version.change(now))
	}
	if head.txn == s.head.txn && now.mtime != s.version.mtime {
		if head, err = s.awaitCommit(now.mtime); err != nil {
			return err
		}
	}
	if head.txn == s.head.txn {
		return nil
	}
	if err := s.hold.effective(head.txn); err != nil {
		return s.stale("%w", err)
	}
	return nil
}

// commitTime is how long a transaction may take from its first write to the
// file to its last, which makes it the newest.
const commitTime = 2 * time.Second

// awaitCommit is for the file of a held snapshot that was written to since, with no transaction to
// show for it: either a writer is about to commit, or the file was overwritten
// by something else that looks alike, such as a database that the same program
// made of other data. It waits to see which.
func (s *snapshot) awaitCommit(mtime int64) (head, error) {
	s.mu.Lock()
	foreign := s.mu.foreign == mtime
	s.mu.Unlock()
	for until := time.Now().Add(commitTime); !foreign; time.Sleep(2 * time.Millisecond) {
		head, now, _, err := look(s.file)
		if err != nil {
			return head, err
		}
		if head.txn != s.head.txn || now.mtime == s.version.mtime {
			return head, nil
		}
		if mtime = now.mtime; time.Now().After(until) {
			break
		}
	}
	s.mu.Lock()
	s.mu.foreign = mtime
	s.mu.Unlock()
	return head{}, s.stale("it was written to, but not by a transaction")
}

// explain returns err, or the error of a stale snapshot if that is the cause: pages
// that are overwritten while they are read look like damage.
func (s *snapshot) explain(err error) error {
	if err != nil {
		if gone := s.intact(); errors.Is(gone, meta.ErrStale) {
			return gone
		}
	}
	return err
}

func (s *snapshot) close() error {
	if s == nil {
		return nil
	}
	s.hold.release()
	return s.file.Close()
}

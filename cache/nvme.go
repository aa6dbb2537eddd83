package cache

import (
	"container/list"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// nvme is the tier of slabs in a directory of a local disk.
//
// A slab's name says what it holds, how long it is and what its bytes hash to.
// It gets that name by a rename when it is complete, so the directory itself
// is the index: a daemon that starts after a crash lists it and knows what is
// there. Bytes that were written by an earlier daemon are hashed before they
// are served for the first time.
type nvme struct {
	dir    string
	budget int64
	root   *os.Root
	lock   *os.File
	log    *slog.Logger

	mu struct {
		sync.Mutex
		slabs  map[Key]*nvmeSlab
		recent *list.List // of *nvmeSlab, the one used last in front
		used   int64      // bytes of all slabs, of those being written and of dying ones, and reserved
		others int64      // of used: reserved for what is not a slab
		claims int64      // bytes that are to be reserved: no slab may take them
		dying  []dyingFile
		serial uint64
		ill    error // why nothing is written now
		until  time.Time
		hurt   uint64 // slabs that did not match their checksum
	}
}

type nvmeSlab struct {
	key      Key
	size     int64
	sum      uint64
	verified bool // hashed by this daemon, or written by it
	users    int  // opens not closed
	place    *list.Element
}

// A dyingFile has no name any more but is still mapped by a rank.
type dyingFile struct {
	file *os.File
	size int64
}

const (
	slabSuffix = ".slab"
	partPrefix = ".part-"
	// illFor is how long a disk that refused a write is left alone.
	illFor = 30 * time.Second
)

func newNVMe(dir string, budget int64, log *slog.Logger) (*nvme, error) {
	if err := os.MkdirAll(dir, 0700); err != nil {
		return nil, fmt.Errorf("nvme directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("nvme directory: %w", err)
	}
	n := &nvme{dir: dir, budget: budget, root: root, log: log}
	n.mu.slabs, n.mu.recent = make(map[Key]*nvmeSlab), list.New()
	if err := n.open(); err != nil {
		n.close()
		return nil, fmt.Errorf("nvme directory %s: %w", dir, err)
	}
	return n, nil
}

func (n *nvme) open() (err error) {
	n.lock, err = n.root.OpenFile(".lock", os.O_RDWR|os.O_CREATE, 0600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(n.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("%w: another rankfs uses it; give each daemon a directory of its own", meta.ErrBusy)
	}
	return n.scan()
}

// scan lists what earlier daemons left, the newest first, and removes what
// they left unfinished.
func (n *nvme) scan() error {
	d, err := n.root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	type found struct {
		slab *nvmeSlab
		when time.Time
	}
	var all []found
	for {
		entries, err := d.ReadDir(1024)
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), partPrefix) {
				n.root.Remove(entry.Name())
				continue
			}
			slab, ok := parseSlab(entry.Name())
			info, ierr := entry.Info()
			if ok && ierr == nil && info.Mode().IsRegular() && info.Size() == slab.size {
				all = append(all, found{slab, info.ModTime()})
			}
		}
		if err != nil { // io.EOF, or a disk that cannot be listed: what was seen is good
			break
		}
	}
	slices.SortFunc(all, func(a, b found) int { return b.when.Compare(a.when) })
	for _, f := range all {
		if n.mu.slabs[f.slab.key] != nil || n.mu.used+f.slab.size > n.budget {
			n.root.Remove(f.slab.name())
			continue
		}
		n.mu.slabs[f.slab.key] = f.slab
		f.slab.place = n.mu.recent.PushBack(f.slab)
		n.mu.used += f.slab.size
	}
	return nil
}

func (s *nvmeSlab) name() string {
	return fmt.Sprintf("%x-%d-%d-%d-%016x%s", s.key.Plan, s.key.Rank, s.key.Step, s.size, s.sum, slabSuffix)
}

// parseSlab is the inverse of name.
func parseSlab(name string) (*nvmeSlab, bool) {
	s := &nvmeSlab{}
	base, ok := strings.CutSuffix(name, slabSuffix)
	id, rest, _ := strings.Cut(base, "-")
	raw, err := hex.DecodeString(id)
	if !ok || err != nil || len(raw) != len(s.key.Plan) {
		return nil, false
	}
	copy(s.key.Plan[:], raw)
	if _, err := fmt.Sscanf(rest, "%d-%d-%d-%x", &s.key.Rank, &s.key.Step, &s.size, &s.sum); err != nil {
		return nil, false
	}
	return s, s.size >= 0 && s.name() == name
}

// has reports whether the slab of k is there, without touching the disk.
func (n *nvme) has(k Key) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.slabs[k] != nil
}

// get opens the slab of k, or returns nil if there is none. A slab whose bytes
// are not what they were is removed and counted, never served.
func (n *nvme) get(k Key) (*os.File, error) {
	n.mu.Lock()
	s := n.mu.slabs[k]
	if s == nil {
		n.mu.Unlock()
		return nil, nil
	}
	s.users++
	n.mu.recent.MoveToFront(s.place)
	verified := s.verified
	n.mu.Unlock()

	f, err := n.root.Open(s.name())
	if err == nil && !verified {
		err = verify(f, s)
	}
	if err == nil {
		n.mu.Lock()
		s.verified = true
		n.mu.Unlock()
		return f, nil
	}
	if f != nil {
		f.Close()
	}
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		n.mu.Lock()
		defer n.mu.Unlock()
		s.users--
		return nil, fmt.Errorf("open nvme slab: %w", err)
	}
	n.log.Warn("nvme slab discarded", "slab", filepath.Join(n.dir, s.name()), "cause", err)
	n.mu.Lock()
	s.users--
	n.mu.hurt++
	n.mu.Unlock()
	n.drop(s)
	return nil, nil
}

// put gives back a file that get returned.
func (n *nvme) put(k Key, f *os.File) {
	f.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.mu.slabs[k]; s != nil {
		s.users--
	}
}

func verify(f *os.File, s *nvmeSlab) error {
	h := xxhash.New()
	size, err := f.WriteTo(h)
	if err != nil {
		return err
	}
	if size != s.size || h.Sum64() != s.sum {
		return fmt.Errorf("%w: its bytes do not match its checksum", meta.ErrCorrupt)
	}
	return nil
}

// write makes the slab of k: produce fills a file that has its size and its
// blocks already and returns the hash of what it wrote.
func (n *nvme) write(k Key, size int64, produce func(*os.File) (uint64, error)) error {
	if err := n.rested(); err != nil {
		return err
	}
	if err := n.reserve(size); err != nil {
		return fmt.Errorf("slab: %w", err)
	}
	s := &nvmeSlab{key: k, size: size, verified: true}
	err := n.writeFile(s, produce)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.mu.used -= size
		if errors.Is(err, errNoRoom) {
			n.mu.ill, n.mu.until = err, time.Now().Add(illFor)
			n.log.Warn("nvme tier rests: its disk refused a slab", "dir", n.dir, "for", illFor, "cause", err)
		}
		return fmt.Errorf("write nvme slab: %w", err)
	}
	n.mu.slabs[k] = s
	s.place = n.mu.recent.PushFront(s)
	return nil
}

// writeFile makes the file, and wraps what the disk refused in errNoRoom, so
// that it is told from what produce could not read.
func (n *nvme) writeFile(s *nvmeSlab, produce func(*os.File) (uint64, error)) error {
	n.mu.Lock()
	n.mu.serial++
	part := fmt.Sprintf("%s%d", partPrefix, n.mu.serial)
	n.mu.Unlock()
	refused := func(err error) error { return fmt.Errorf("%w: %w", err, errNoRoom) }

	f, err := n.root.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0600)
	if err != nil {
		return refused(err)
	}
	defer f.Close()
	defer n.root.Remove(part) // gone already when all went well
	if s.size > 0 {
		if err := unix.Fallocate(int(f.Fd()), 0, 0, s.size); err != nil {
			return refused(err)
		}
	}
	if s.sum, err = produce(f); err != nil {
		return err
	}
	if err := n.root.Rename(part, s.name()); err != nil {
		return refused(err)
	}
	return nil
}

// rested returns nil if the disk may be written to.
func (n *nvme) rested() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.ill != nil && time.Now().Before(n.mu.until) {
		return fmt.Errorf("nvme tier rests: %w", n.mu.ill)
	}
	n.mu.ill = nil
	return nil
}

// reserve counts size bytes as used, evicting what was used longest ago.
func (n *nvme) reserve(size int64) error {
	for {
		n.mu.Lock()
		switch {
		case size > n.budget-n.mu.others:
			defer n.mu.Unlock()
			return fmt.Errorf("%d bytes, nvme budget of %d, %d of it for other files: %w", size, n.budget, n.mu.others, errNoRoom)
		case n.mu.used+n.mu.claims+size <= n.budget:
			n.mu.used += size
			n.mu.Unlock()
			return nil
		}
		n.mu.Unlock()
		if !n.shrink() {
			return fmt.Errorf("%d bytes, all of the nvme budget in use: %w", size, errNoRoom)
		}
	}
}

// shrink gives up the slab used longest ago that nobody holds, or what ranks
// have let go of. It reports whether there was any.
func (n *nvme) shrink() bool {
	n.mu.Lock()
	victim := n.oldestIdle()
	n.mu.Unlock()
	if victim == nil {
		return n.sweep()
	}
	n.drop(victim)
	return true
}

// oldestIdle is the slab used longest ago that nobody holds. mu is held.
func (n *nvme) oldestIdle() *nvmeSlab {
	for e := n.mu.recent.Back(); e != nil; e = e.Prev() {
		if s := e.Value.(*nvmeSlab); s.users == 0 {
			return s
		}
	}
	return nil
}

// drop removes a slab's name. A rank may map it still; then its bytes count
// until the rank is done.
func (n *nvme) drop(s *nvmeSlab) {
	n.mu.Lock()
	if n.mu.slabs[s.key] != s || s.users > 0 {
		n.mu.Unlock()
		return
	}
	delete(n.mu.slabs, s.key)
	n.mu.recent.Remove(s.place)
	n.mu.Unlock()

	f, err := n.root.Open(s.name())
	n.root.Remove(s.name())
	mapped := err == nil && !unmapped(int(f.Fd()))
	n.mu.Lock()
	defer n.mu.Unlock()
	if mapped {
		n.mu.dying = append(n.mu.dying, dyingFile{f, s.size})
		return
	}
	if err == nil {
		f.Close()
	}
	n.mu.used -= s.size
}

// sweep lets go of dying files that nobody maps any more and reports whether
// there were any.
func (n *nvme) sweep() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := len(n.mu.dying)
	n.mu.dying = slices.DeleteFunc(n.mu.dying, func(d dyingFile) bool {
		if !unmapped(int(d.file.Fd())) {
			return false
		}
		d.file.Close()
		n.mu.used -= d.size
		return true
	})
	return len(n.mu.dying) < before
}

func (n *nvme) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range n.mu.dying {
		d.file.Close()
	}
	n.mu.dying = nil
	if n.lock != nil {
		n.lock.Close()
	}
	return n.root.Close()
}

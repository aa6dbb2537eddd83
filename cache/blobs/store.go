package blobs

import (
	"context"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"rankfs/cache/disks"
)

// Room is where blobs are, and its budget. Its methods may be called concurrently.
type Room interface {
	// Folders are the folders of a name in the directories that can be read now.
	Folders(name string) []*disks.Folder
	// Reserve counts bytes as used, until the reservation is released, in the directory of
	// that path, or for files to come in any that has room for them if it is
	// empty. The error wraps meta.ErrNoSpace if there is no room, now or ever.
	Reserve(ctx context.Context, bytes int64, in string) (*disks.Reservation, error)
}

// Config says where blobs are, and what their files are called.
type Config struct {
	Room   Room
	Folder string // in each directory; no other store has it
	Suffix string // of whole blobs
	Log    *slog.Logger
}

// A Store is the blobs of one folder, which only this process uses.
//
//   - A blob is in blobs while it has a use, or is in the budget.
//   - One that has no use and that is not wanted is removed: at once if it is whole,
//     after a day if it is interrupted and may be gone on with.
//   - What is in a folder in listed is known. One that cannot be read is not there: what
//     is in it may have been made anew elsewhere meanwhile, or be unwanted by now.
//
// While mu is held no other lock is taken, and there is no I/O. The methods may be
// called concurrently.
type Store struct {
	config Config
	log    *slog.Logger
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu struct {
		sync.Mutex
		blobs  map[string]*Blob
		wanted map[string]bool // nil until the first Retain: all is
		listed map[disks.Folder]bool
		closed bool
	}
}

// patience is how long an interrupted blob that no owner wants is kept for another
// attempt: over a night.
const patience = 24 * time.Hour

// New returns a store. It does no I/O.
func New(c Config) *Store {
	s := &Store{config: c, log: c.Log}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.mu.blobs, s.mu.listed = make(map[string]*Blob), make(map[disks.Folder]bool)
	return s
}

// Close interrupts the making of blobs. None is in use any more.
func (s *Store) Close() {
	s.mu.Lock()
	s.mu.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
}

// Retain sets the keys of the blobs that are wanted. Others are removed as soon as they
// have no use. It also finds those that earlier processes left, or this one on a disk
// that could not be read.
func (s *Store) Retain(keys map[string]bool) {
	s.mu.Lock()
	s.mu.wanted = maps.Clone(keys)
	if keys == nil {
		s.mu.wanted = make(map[string]bool)
	}
	s.mu.Unlock()
	for _, f := range s.list() {
		s.adopt(f)
	}
	s.sweep(patience)
}

// list finds what is in folders that were not listed yet: whole blobs first. None of it
// is in the budget.
func (s *Store) list() (all []found) {
	for _, folder := range s.folders() {
		s.mu.Lock()
		known := s.mu.listed[*folder]
		s.mu.listed[*folder] = true
		s.mu.Unlock()
		if known {
			continue
		}
		some, err := s.look(folder)
		if err != nil {
			s.log.Error("blobs not listed", "dir", folder.Dir(), "cause", err)
			s.unlist(folder)
		}
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(a, b found) int {
		switch {
		case a.whole == b.whole:
			return strings.Compare(a.key, b.key)
		case a.whole:
			return -1
		}
		return 1
	})
	return all
}

// unlist has a folder looked at again by the next Retain.
func (s *Store) unlist(folder *disks.Folder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.listed, *folder)
}

// found is a blob in a folder.
type found struct {
	key     string
	folder  *disks.Folder
	size    int64 // zero if it has only sums
	whole   bool
	touched time.Time
}

// look finds the blobs of one folder.
func (s *Store) look(folder *disks.Folder) (all []found, err error) {
	files, err := folder.List()
	byKey := make(map[string]found)
	for _, info := range files {
		key, kind, _ := strings.Cut(info.Name(), ".")
		if !isKey(key) {
			continue
		}
		f, ok := byKey[key]
		if !ok {
			f = found{key: key, folder: folder}
		}
		if whole := kind == s.config.Suffix; whole || kind == part && !f.whole {
			f.whole, f.size, f.touched = whole, info.Size(), info.ModTime()
		}
		byKey[key] = f
	}
	return slices.Collect(maps.Values(byKey)), err
}

func isKey(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 16
}

// adopt enters a blob that was found, unless its key is known: then there is a better
// one elsewhere, and it is removed. So is one that the budget has no room for.
func (s *Store) adopt(f found) {
	b, known := s.enter(f)
	if known {
		return
	}
	if b != nil && f.size > 0 {
		b.size, b.folder, b.whole, b.touched = f.size, f.folder, f.whole, f.touched
		if err := b.reserve(s.ctx); err != nil {
			s.log.Warn("blob removed: the budget has no room for it", "blob", b.path(), "cause", err)
		}
	}
	if b == nil || b.reserved == nil {
		s.erase(f.folder, f.key)
	}
	if b != nil {
		s.end(b, false)
	}
}

// enter begins a use in which a blob that was found is adopted. It returns nil if that
// is to be removed, as there is another one of its key; known if it is that one, or one
// that is being used, which knows by itself.
func (s *Store) enter(f found) (b *Blob, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b = s.mu.blobs[f.key]; b == nil {
		b = newBlob(s, f.key)
		s.mu.blobs[f.key] = b
		b.use = &use{ended: make(chan struct{})}
		return b, false
	}
	if b.use != nil {
		delete(s.mu.listed, *f.folder) // it is looked at again
		return nil, true
	}
	return nil, b.folder.Dir() == f.folder.Dir()
}

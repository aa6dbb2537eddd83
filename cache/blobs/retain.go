package blobs

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"rankfs/cache/disks"
)

// patience is how long an interrupted blob that no owner wants is kept for another
// attempt: over a night.
const patience = 24 * time.Hour

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
	for _, folder := range s.folders.all() {
		if s.folders.list(folder) {
			continue
		}
		some, err := s.look(folder)
		if err != nil {
			s.log.Error("blobs not listed", "dir", folder.Dir(), "cause", err)
			s.folders.unlist(folder)
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
		if whole := kind == s.folders.Suffix; whole || kind == part && !f.whole {
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
		s.folders.erase(f.folder, f.key)
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
		b = newBlob(s, &s.folders, f.key)
		s.mu.blobs[f.key] = b
		b.use = &use{ended: make(chan struct{})}
		return b, false
	}
	if b.use != nil {
		s.folders.unlist(f.folder) // it is looked at again
		return nil, true
	}
	return nil, b.folder.Dir() == f.folder.Dir()
}

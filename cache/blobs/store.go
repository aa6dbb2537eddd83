// Package blobs answers where bytes that must not be given up lie on local
// disks, and whether they are still what was written.
//
// A blob has a key, and two files in the folder "copies" of one directory of the
// NVMe tier:
//
//	KEY.mdb     the blob; it has this name only when it is whole and synced
//	KEY.part    one that is unfinished, and can be gone on with
//	KEY.sums    what the granules of either hash to
//
// Slabs and blobs share a directory's budget, floor and health. A slab may be
// given up at any time and is never synced; a blob makes slabs give way, stays
// until its owner removes it, and is found by its name after a restart. Granules
// that an earlier process wrote are compared with their sums before they are
// used for the first time.
package blobs

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Room is the budget of the directories that blobs are in. Its methods may be
// called concurrently.
type Room interface {
	// Directories are those that can be read now.
	Directories() []string
	// Reserve counts bytes as used, until release is called, in the directory of
	// that path, or for files to come in any that has room for them if it is
	// empty, and returns which. The error wraps meta.ErrNoSpace if there is no
	// room, now or ever.
	Reserve(ctx context.Context, bytes int64, in string) (dir string, release func(), err error)
}

// A Store is the blobs in the directories of a budget, which only this process
// uses. Its methods may be called concurrently, for different keys.
type Store struct {
	room Room
	log  *slog.Logger
}

// New returns the store of the blobs that count in room. It does no I/O.
func New(room Room, log *slog.Logger) *Store { return &Store{room, log} }

// Blob is the blob of a key, which may not be there.
func (s *Store) Blob(key string) *Blob { return &Blob{store: s, key: key} }

// folder is where the blobs of a directory are: its name is that of what was the
// first to be kept as blobs, copies of LMDBs.
const folder = "copies"

// List finds what earlier processes left: whole blobs first. None of it is in the
// budget yet. Of two for one key, of which one was made while the disk of the
// other could not be read, the whole one or else the first is kept. An error is
// of a directory; what is in the others is returned with it.
func (s *Store) List() ([]*Blob, error) {
	kept := make(map[string]*Blob)
	var errs []error
	for _, dir := range s.room.Directories() {
		found, err := s.list(filepath.Join(dir, folder))
		errs = append(errs, err)
		for key, b := range found {
			b.dir = dir
			if old := kept[key]; old != nil && (old.whole || !b.whole) {
				b.erase(dir)
				continue
			} else if old != nil {
				old.erase(old.dir)
			}
			kept[key] = b
		}
	}
	var all []*Blob
	for _, b := range kept {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b *Blob) int {
		switch {
		case a.whole == b.whole:
			return strings.Compare(a.key, b.key)
		case a.whole:
			return -1
		}
		return 1
	})
	return all, errors.Join(errs...)
}

// list finds the blobs in one folder by their keys. Of one that has only sums the
// size is zero.
func (s *Store) list(path string) (map[string]*Blob, error) {
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	found := make(map[string]*Blob)
	for _, e := range entries {
		key, kind, _ := strings.Cut(e.Name(), ".")
		info, err := e.Info()
		if err != nil || !isKey(key) {
			continue
		}
		if found[key] == nil {
			found[key] = s.Blob(key)
		}
		if b := found[key]; kind == whole || kind == part && !b.whole {
			b.whole, b.size, b.touched = kind == whole, info.Size(), info.ModTime()
		}
	}
	return found, nil
}

func isKey(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 16
}

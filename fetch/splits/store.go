package splits

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// A Store keeps the findings of each split of a source until the index is complete, so
// that an interrupted scan goes on where it stopped. There is one file for each split,
// which gets its name only when it is complete.
type Store struct {
	dir string // empty: nothing is kept
}

// NewStore returns the one of a version of a source, in a directory for those of all sources. If
// that is empty nothing is kept.
func NewStore(scratch, source, version string) *Store {
	if scratch == "" {
		return &Store{}
	}
	sum := sha256.Sum256([]byte(source + "\n" + version))
	return &Store{filepath.Join(scratch, hex.EncodeToString(sum[:storeName]))}
}

// keepFindings is how long after its last finding a scan may be taken up again.
const keepFindings = 7 * 24 * time.Hour

// Sweep removes the stores in a directory to which nothing was added for so long.
func Sweep(scratch string) error {
	since := time.Now().Add(-keepFindings)
	if scratch == "" {
		return nil
	}
	entries, err := os.ReadDir(scratch)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		info, ierr := e.Info()
		name, herr := hex.DecodeString(e.Name())
		if ierr != nil || herr != nil || len(name) != storeName || !e.IsDir() || info.ModTime().After(since) {
			continue
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(scratch, e.Name())))
	}
	return err
}

// storeName bytes of a hash name a store.
const storeName = 16

// find returns the findings of a split: those of an earlier scan, or else what look writes,
// which check, if it is not nil, finds nothing wrong with.
func (s *Store) find(split int, look, check func(f *Findings) error) (*Findings, error) {
	found, err := s.get(split)
	if found == nil && err == nil {
		found, err = s.make(split, look, check)
	}
	return found, err
}

// get returns the findings of an earlier scan, or nil.
func (s *Store) get(split int) (*Findings, error) {
	if s.dir == "" {
		return nil, nil
	}
	f, err := os.Open(s.name(split))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := &Findings{file: f}
	if !found.sound() { // torn by a crash of the machine: found again
		found.close()
		return nil, nil
	}
	return found, nil
}

func (s *Store) name(split int) string { return filepath.Join(s.dir, strconv.Itoa(split)) }

// make has look write findings, and returns them for reading. If check is not nil it
// reads them first, and says why they are not kept.
func (s *Store) make(split int, look, check func(f *Findings) error) (*Findings, error) {
	dir := s.dir
	if dir == "" {
		dir = os.TempDir()
	} else if err := os.MkdirAll(dir, 0700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, ".part-*.tmp")
	if err != nil {
		return nil, err
	}
	found, err := note(f, math.MaxInt64, look)
	if err == nil && check != nil {
		err = errors.Join(check(found), found.Rewind())
	}
	if err == nil && s.dir != "" {
		err = os.Rename(f.Name(), s.name(split))
	} else {
		os.Remove(f.Name())
	}
	if err != nil {
		found.close()
		return nil, err
	}
	return found, nil
}

// Remove removes what was kept in case the scan is interrupted.
func (s *Store) Remove() {
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

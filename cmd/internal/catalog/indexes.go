package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"rankfs/fetch/peers"
	"rankfs/meta"
	"rankfs/meta/durable"
)

// indexes are the record tables of datasets. A file is named for the hash of its
// bytes, so what has the name is whole, and the same for every node. A hash is counted as
// fresh before its file has the name, and the lock is held while files that no dataset has
// are removed: so none is removed that was just added.
type indexes struct {
	dir string

	mu struct {
		sync.Mutex
		fresh map[string]int // hashes that no dataset has yet, with how often they were added
	}
}

// newPrefix begins the names of indexes that are being made.
const newPrefix = ".new-"

func openIndexes(dir string) (*indexes, error) {
	if err := os.MkdirAll(dir, 0700); err != nil {
		return nil, fmt.Errorf("indexes: %w", err)
	}
	x := &indexes{dir: dir}
	x.mu.fresh = make(map[string]int)
	return x, x.discard(func(name string) bool { return strings.HasPrefix(name, newPrefix) })
}

func (x *indexes) path(hash string) string { return filepath.Join(x.dir, hash) }

func (x *indexes) has(hash string) bool {
	_, err := os.Stat(x.path(hash))
	return err == nil
}

// open opens an index for another node, and says how long it is.
func (x *indexes) open(hash peers.ID) (*os.File, int64, error) {
	f, err := os.Open(x.path(hex.EncodeToString(hash[:])))
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, meta.Worded(meta.ErrNotExist, "index %x does not exist on this node", hash[:8])
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// create says where an index can be made.
func (x *indexes) create() (path string, err error) {
	dir, err := os.MkdirTemp(x.dir, newPrefix)
	if err != nil {
		return "", fmt.Errorf("make index: %w", err)
	}
	return filepath.Join(dir, "index"), nil
}

// add takes in an index that was made. It is kept until release at least.
func (x *indexes) add(path string) (hash string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, fmt.Errorf("take in index: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, fmt.Errorf("take in index: %w", err)
	}
	hash = hex.EncodeToString(h.Sum(nil))
	x.mu.Lock()
	x.mu.fresh[hash]++
	x.mu.Unlock()
	if err := durable.Rename(f, x.path(hash)); err != nil {
		x.release(hash)
		return "", 0, fmt.Errorf("take in index: %w", err)
	}
	return hash, size, nil
}

// release says that a dataset has an index that was added, or will not have it.
func (x *indexes) release(hash string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.fresh[hash]--; x.mu.fresh[hash] <= 0 {
		delete(x.mu.fresh, hash)
	}
}

// keep discards all indexes but these, and those that were just added.
func (x *indexes) keep(hashes map[string]bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.discard(func(name string) bool {
		return !strings.HasPrefix(name, newPrefix) && !hashes[name] && x.mu.fresh[name] == 0
	})
}

func (x *indexes) discard(is func(name string) bool) error {
	entries, err := os.ReadDir(x.dir)
	if err != nil {
		return fmt.Errorf("indexes: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if is(e.Name()) {
			errs = append(errs, os.RemoveAll(filepath.Join(x.dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// discardOne removes an index that cannot be read.
func (x *indexes) discardOne(hash string) { os.Remove(x.path(hash)) }

// abandon removes an index that was made and not added.
func (x *indexes) abandon(path string) { os.RemoveAll(filepath.Dir(path)) }

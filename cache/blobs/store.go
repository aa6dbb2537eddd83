package blobs

import (
	"context"
	"log/slog"
	"sync"

	"rankfs/cache/disks"
)

// A Store is the blobs of one folder, which only this process uses.
//
//   - A blob is in blobs while it has a use, or is in the budget.
//   - One that has no use and that is not wanted is removed: at once if it is whole,
//     after a day if it is interrupted and may be gone on with.
//   - What is in a folder that was listed is known. One that cannot be read is not there: what
//     is in it may have been made anew elsewhere meanwhile, or be unwanted by now.
//
// While mu is held no other lock is taken but that of folders, and there is no I/O. The methods may be
// called concurrently.
type Store struct {
	folders folders
	log     *slog.Logger
	ctx     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup

	mu struct {
		sync.Mutex
		blobs  map[string]*Blob
		wanted map[string]bool // nil until the first Retain: all is

		closed bool
	}
}

// New returns a store. It does no I/O.
func New(c Config) *Store {
	s := &Store{folders: folders{Config: c}, log: c.Log}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.mu.blobs, s.folders.mu.listed = make(map[string]*Blob), make(map[disks.Folder]bool)
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

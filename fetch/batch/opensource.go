package batch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// ErrRemoved is the end of every read of a version that was taken out of the catalog.
var ErrRemoved = fmt.Errorf("%w: the dataset was removed or refreshed; open it by its path again", meta.ErrStale)

// An OpenSource owns the resources of a version that have to be closed: the index, and
// the source once it is attached. It outlives the Version, which refers to it and not
// the other way round.
//
// It goes from open to removed to closed. All of that is read without a lock: the cache
// asks under its own where chunks are, and must not wait for a source. The lock is held
// while the source is attached, which may take long, and to close, not while reads are
// waited for.
type OpenSource struct {
	index     *index.Index
	data      atomic.Pointer[fetch.Dataset] // owns index once it is there; set under attaching
	removed   atomic.Bool                   // data refuses reads, if it is there, and will not be attached
	closed    atomic.Bool                   // set under attaching
	missed    atomic.Pointer[miss]          // the last attempt to attach what another node has
	stale     atomic.Pointer[error]         // what Data or a read found last: the source has changed; nil: it has not
	attaching sync.Mutex
}

// A miss is why a source that another node has could not be attached here.
type miss struct {
	err   error
	until time.Time // then it is tried again
}

// attach attaches the source that was not found; others that come meanwhile wait for that. What
// another node has, as elsewhere says, is looked for here once in answerAge, and not at each
// open of what is in memory.
func (s *OpenSource) attach(ctx context.Context, uri string, env *fetch.Env, elsewhere func() (node string)) (*fetch.Dataset, error) {
	if m := s.missed.Load(); m != nil && time.Now().Before(m.until) {
		return nil, m.err
	}
	s.attaching.Lock()
	defer s.attaching.Unlock()
	if d, err := s.found(); d != nil || err != nil {
		return d, err
	}
	d, err := s.open(ctx, uri, env)
	if errors.Is(err, meta.ErrStale) && !errors.Is(err, ErrRemoved) && elsewhere() != "" {
		s.missed.Store(&miss{err, time.Now().Add(answerAge)})
	}
	return d, err
}

// open attaches the source. The lock is held.
func (s *OpenSource) open(ctx context.Context, uri string, env *fetch.Env) (*fetch.Dataset, error) {
	src, err := fetch.Open(uri, env)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%q: %w", uri, meta.ErrGone)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", meta.ErrStale, err)
	}
	d, err := fetch.Attach(ctx, src, s.index)
	if err != nil {
		src.Close()
		return nil, err
	}
	d.Noticed = s.noteStale
	s.data.Store(d)
	if s.removed.Load() { // meanwhile
		d.Refuse(ErrRemoved)
		return nil, ErrRemoved
	}
	return d, nil
}

// found is the source that is attached, if there is one, or why there will be none.
func (s *OpenSource) found() (*fetch.Dataset, error) {
	switch {
	case s.removed.Load():
		return nil, ErrRemoved
	case s.closed.Load():
		return nil, os.ErrClosed
	}
	return s.data.Load(), nil
}

// attached is the source and its index, nil before the first byte was asked for.
func (s *OpenSource) attached() *fetch.Dataset {
	if s.closed.Load() {
		return nil
	}
	return s.data.Load()
}

// note notes what came of a look at the source, before which known was noted. One that was
// broken off, or that got no answer, says nothing of it; one that found nothing says
// nothing of what a read found meanwhile.
func (s *OpenSource) note(known *error, err error) {
	switch {
	case err == nil && known != nil:
		s.stale.CompareAndSwap(known, nil)
	case errors.Is(err, meta.ErrStale):
		s.noteStale(err)
	}
}

func (s *OpenSource) noteStale(err error) { s.stale.Store(&err) }

// Remove makes every further open of a batch fail, since the dataset was removed or
// refreshed. It waits for nothing.
func (s *OpenSource) Remove() {
	s.removed.Store(true)
	if d := s.data.Load(); d != nil {
		d.Refuse(ErrRemoved)
	}
}

// Detach closes the source of a version that was removed, which may free much of a disk.
// It waits while the source is attached and for reads under way. The index stays open for
// views that look things up in it.
func (s *OpenSource) Detach() error {
	s.attaching.Lock()
	d := s.data.Load()
	s.attaching.Unlock()
	if d != nil {
		return d.Detach(ErrRemoved)
	}
	return nil
}

// Close waits for reads under way. A second Close does nothing.
func (s *OpenSource) Close() error {
	s.attaching.Lock()
	closed := s.closed.Swap(true)
	s.attaching.Unlock()
	if d := s.data.Load(); d != nil {
		return d.Close()
	}
	if closed {
		return nil
	}
	return s.index.Close()
}

// IsClosed does not wait for a source that is being attached.
func (s *OpenSource) IsClosed() bool { return s.closed.Load() }

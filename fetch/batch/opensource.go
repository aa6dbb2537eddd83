package batch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

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
// It goes from open to removed to closed. mu is held while the source is attached,
// which may take long; closed can be read without it.
type OpenSource struct {
	index  *index.Index
	closed atomic.Bool           // set under mu
	stale  atomic.Pointer[error] // what Data found last: the source has changed; nil: it has not

	mu struct {
		sync.Mutex
		data    *fetch.Dataset // owns index once it is there
		removed bool           // data is detached, if it is there, and will not be attached
	}
}

func (s *OpenSource) attach(ctx context.Context, uri string, env *fetch.Env) (*fetch.Dataset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.removed {
		return nil, ErrRemoved
	}
	if s.mu.data != nil || s.closed.Load() {
		return s.mu.data, nil
	}
	src, err := fetch.Open(uri, env)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", meta.ErrStale, err)
	}
	d, err := fetch.Attach(ctx, src, s.index)
	if err != nil {
		src.Close()
		return nil, err
	}
	s.mu.data = d
	return d, nil
}

// attached is the source and its index, nil before the first byte was asked for.
func (s *OpenSource) attached() *fetch.Dataset {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return nil
	}
	return s.mu.data
}

// found notes what came of a look at the source. One that was broken off, or that got
// no answer, says nothing of it.
func (s *OpenSource) found(err error) {
	switch {
	case err == nil:
		s.stale.Store(nil)
	case errors.Is(err, meta.ErrStale):
		s.stale.Store(&err)
	}
}

// Remove makes every further open of a batch fail, since the dataset was removed or
// refreshed. It closes the source, which may free much of a disk; the index stays
// open for views that look things up in it.
func (s *OpenSource) Remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.removed = true
	if s.mu.data == nil {
		return nil
	}
	return s.mu.data.Detach(ErrRemoved)
}

// Close waits for reads under way. A second Close does nothing.
func (s *OpenSource) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Swap(true) {
		return nil
	}
	if s.mu.data != nil {
		return s.mu.data.Close()
	}
	return s.index.Close()
}

// IsClosed does not wait for a source that is being attached.
func (s *OpenSource) IsClosed() bool { return s.closed.Load() }

package blobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"rankfs/meta"
)

// A Maker fetches what is missing of a blob: it calls Begin, and then Put for each
// granule that does not Match.
type Maker func(ctx context.Context, b *Blob) error

// Take returns the blob of a key and a size, whole and open, for one more user until
// Release. If there is none, maker makes it, for all users there are. Take waits for
// that, and calls told with how many bytes are there now and then; or if told is nil it
// does not wait, and the error wraps meta.ErrBusy until the blob is whole. It is wanted
// then, until the next Retain, and made even if no caller waits.
func (s *Store) Take(ctx context.Context, key string, size int64, maker Maker, told func(bytes int64)) (*Blob, error) {
	b, err := s.join(ctx, key, size, maker, told == nil)
	if err != nil {
		return nil, err
	}
	if told != nil {
		err = s.await(ctx, b, told)
	} else {
		err = s.ready(ctx, b)
	}
	if err != nil {
		b.Release()
		return nil, err
	}
	return b, nil
}

// await waits until a blob is ready.
func (s *Store) await(ctx context.Context, b *Blob, told func(bytes int64)) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-b.use.ready:
			return b.use.err
		case <-tick.C:
			told(b.have.Load())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ready waits until it is known whether a blob is ready.
func (s *Store) ready(ctx context.Context, b *Blob) error {
	select {
	case <-b.use.ready:
		return b.use.err
	case <-ctx.Done():
		return ctx.Err()
	case <-b.use.begun:
	}
	select {
	case <-b.use.ready:
		return b.use.err
	default:
	}
	s.mu.Lock()
	failed := b.failed
	s.mu.Unlock()
	err := fmt.Errorf("%w: it is being copied to this host, %d of %d bytes are here; try again later", meta.ErrBusy, b.have.Load(), b.size)
	if failed != nil {
		err = fmt.Errorf("%w (the last attempt: %v)", err, failed)
	}
	return err
}

// join makes the caller a user of a blob, which may not be there yet.
func (s *Store) join(ctx context.Context, key string, size int64, maker Maker, lasting bool) (*Blob, error) {
	for {
		b, ending, err := s.tryJoin(key, size, maker, lasting)
		if err != nil || ending == nil {
			return b, err
		}
		select {
		case <-ending:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Store) tryJoin(key string, size int64, maker Maker, lasting bool) (b *Blob, ending <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, nil, fmt.Errorf("%w: the daemon is shutting down", meta.ErrBusy)
	}
	b = s.mu.blobs[key]
	if b == nil {
		b = newBlob(s, &s.folders, key)
		s.mu.blobs[key] = b
	}
	if b.use == nil {
		b.size = size
		s.begin(b, maker)
	} else if b.use.users == 0 {
		return nil, b.use.ended, nil
	}
	b.use.users++
	if lasting && !b.use.lasting {
		b.use.lasting = true
		b.use.users++ // until it is ready
	}
	if lasting && s.mu.wanted != nil {
		s.mu.wanted[key] = true // until the next Retain
	}
	return b, nil, nil
}

// begin starts the use of a blob. mu is held.
func (s *Store) begin(b *Blob, maker Maker) {
	ctx, leave := context.WithCancel(s.ctx)
	u := &use{begun: make(chan struct{}), ready: make(chan struct{}), ended: make(chan struct{}), leave: leave}
	b.use = u
	s.work.Go(func() {
		defer leave()
		u.err = s.open(ctx, b, maker)
		close(u.ready)
		s.mu.Lock()
		lasting := u.lasting
		b.failed = u.err
		u.lasting = true // the making is over: no later user has to keep it going
		s.mu.Unlock()
		if lasting {
			if u.err != nil {
				s.log.Warn("blob not made", "blob", b.key, "cause", u.err)
			}
			s.leave(b)
		}
		<-ctx.Done()
		b.close()
		s.end(b, u.err == nil)
	})
}

// open opens a blob, or has it made if there is none.
func (s *Store) open(ctx context.Context, b *Blob, maker Maker) error {
	err := b.roomy(func() error { return b.open(ctx) })
	if err == nil {
		b.have.Store(b.size)
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	b.have.Store(0)
	if err = maker(ctx, b); err == nil {
		err = b.finish()
	}
	if errors.Is(err, meta.ErrStale) || err != nil && b.empty() { // nothing to go on with
		b.close()
		b.remove()
	}
	return err
}

// leave ends the part of one user.
func (s *Store) leave(b *Blob) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.use.users--
	if last = b.use.users == 0; last {
		b.use.leave()
	}
	return last
}

package cache

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/meta/stall"
)

var errClosing = fmt.Errorf("%w: the daemon is shutting down", meta.ErrBusy)

// holds are how slabs are held, or waited for: by opens of batches, and by fills that
// copy from inputs.
type holds struct {
	config      *Config
	mu          *guarded
	descriptors *descriptors
	ctx         context.Context
	tasks       *sync.WaitGroup // of the cache
}

// follow notes for its reader that a batch is opened, on the account of a job. The cache's lock is held.
func (h *holds) follow(e *entry, s *Series, rank, step uint64, on *usage, now time.Time) (seen move) {
	seen = h.mu.readers.follow(e, s, rank, step, on, now)
	if seen.asks != nil {
		h.askNext(seen.asks)
	}
	if seen.misses {
		h.mu.queue.wake.Signal()
	}
	return seen
}

// askNext asks a series for that of the epoch after it, which may take a while. The
// cache's lock is held.
func (h *holds) askNext(ep *epoch) {
	if h.mu.life.closed {
		return
	}
	ep.asked = true
	s := ep.series
	h.tasks.Go(func() {
		next := s.Next()
		h.mu.Lock()
		defer h.mu.Unlock()
		ep.next = next
		h.mu.readers.tenants.succeed(ep.series, next)
		h.mu.queue.wake.Signal()
	})
}

// hold counts one more open of a ready entry. The cache's lock is held.
func (h *holds) hold(e *entry) *Slab {
	e.holders++
	e.opened, e.copied = true, false
	h.mu.count.Handles++
	return &Slab{config: h.config, mu: h.mu, descriptors: h.descriptors, entry: e}
}

// join has an open wait for an entry that is not ready. If it is mine, the entry is the
// caller's to have filled, on that account. The cache's lock is held.
func (h *holds) join(e *entry, on *usage, mine bool, with stall.Cause) {
	e.waiters++
	if mine {
		h.mu.slabs.begin(e, on, with)
	} else {
		h.mu.queue.joins(e, on)
	}
}

// await holds the slab of an entry when it is filled, for an open, or for a fill that
// copies from it.
func (h *holds) await(ctx context.Context, e, fill *entry) (*Slab, error) {
	err := h.awaitDone(ctx, e)
	h.mu.Lock()
	defer h.mu.Unlock()
	e.waiters--
	if fill != nil {
		e.fills = slices.Delete(e.fills, slices.Index(e.fills, fill), slices.Index(e.fills, fill)+1)
	}
	if err == nil && h.mu.life.ended {
		err = errClosing
	}
	if e.state == ready && err == nil {
		h.mu.readers.served(e)
		return h.hold(e), nil
	}
	if err == context.DeadlineExceeded {
		err = h.late(e)
	}
	if e.state == ready && e.waiters == 0 && e.holders == 0 {
		h.mu.setIdle(e)
	}
	if err == nil {
		err = e.err
	}
	return nil, err
}

// late is the error of an open that has waited for an entry as long as one may. The
// cache's lock is held.
func (h *holds) late(e *entry) error {
	after := meta.FormatTime(h.config.OpenTimeout)
	if short := h.mu.room.keeps(e, time.Now()); short != nil {
		return meta.Worded(context.DeadlineExceeded, "batch not ready after %s: %w", after, short)
	}
	if e.stalled == nil {
		return meta.Worded(context.DeadlineExceeded, "batch not ready after %s", after)
	}
	return meta.Worded(context.DeadlineExceeded, "batch not ready after %s: %w", after, e.stalled)
}

// awaitDone waits until an entry is ready or failed.
func (h *holds) awaitDone(ctx context.Context, e *entry) error {
	timer := time.NewTimer(h.config.OpenTimeout)
	defer timer.Stop()
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return context.DeadlineExceeded
	case <-h.ctx.Done():
		return errClosing
	}
}

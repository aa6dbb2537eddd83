package cache

import (
	"context"
	"fmt"
	"io"
	"time"

	"rankfs/cache/stall"
	"rankfs/meta"
)

// Part returns a slab that a Fill wants to copy from, one of a plan that is
// shared. Whoever asks for one that is not there fills it: a fill that left
// that to another worker could wait for itself.
//
// It never waits for memory, as its caller holds some. An error that wraps
// meta.ErrNoSpace means that there is none: go to the source for the bytes.
// Parts count as opens of their plan's rank, so what is read one after the
// other is made ready ahead.
func (c *Cache) Part(ctx context.Context, p Plan, rank, step uint64) (*Slab, error) {
	now := time.Now()
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		return nil, fmt.Errorf("part of a batch: %w", errClosing)
	}
	s, e, mine := c.join(p, rank, step, now, stall.Plan)
	if s != nil {
		c.mu.Unlock()
		return s, nil
	}
	clock := e.clock
	c.mu.Unlock()
	defer stall.Follow(ctx, clock)() // who waits for the batch waits for its part
	if mine {
		c.make(e, false)
	}
	return c.await(ctx, e)
}

// ReadAt copies bytes of the slab. It may be called until Release.
func (s *Slab) ReadAt(p []byte, off int64) (int, error) {
	e := s.entry
	if e.ram == nil {
		return e.file.ReadAt(p, off)
	}
	if off < 0 || off > e.size {
		return 0, fmt.Errorf("read slab at %d %w: it has %d bytes", off, meta.ErrInvalid, e.size)
	}
	mem, err := s.cache.bytes(e.ram)
	if err != nil {
		return 0, err
	}
	n := copy(p, mem[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

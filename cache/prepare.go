package cache

import (
	"context"
	"fmt"
	"time"

	"rankfs/meta/stall"
)

// Prepare makes a batch ready for the next open of it, on the caller's
// goroutine. It takes the place of nothing that a reader is known to come to, nor
// on a disk of what was pinned or is of the same series: the error then wraps
// meta.ErrNoSpace.
func (c *Cache) Prepare(ctx context.Context, of *Series, rank, step uint64) error {
	now, k := time.Now(), of.Key(rank, step)
	c.mu.Lock()
	if c.mu.life.closed {
		c.mu.Unlock()
		return fmt.Errorf("prepare batch: %w", errClosing)
	}
	if c.mu.slabs.idle.find(k, false) != 0 {
		c.mu.Unlock()
		c.store.closeOnDisk(k)
		return nil
	}
	e, mine := c.mu.slabs.entry(of, k, rank, step)
	if mine {
		c.mu.slabs.begin(e, c.mu.accounts.others.part(false), stall.Overhead)
		e.byHand, e.last = true, now // as if it had been used
		c.mu.Unlock()
		c.workers.make(e, false)
		c.mu.Lock()
	}
	if e.state != filling { // else others fill it, or an open has come meanwhile
		err := e.err
		c.mu.Unlock()
		c.store.closeOnDisk(k)
		return err
	}
	e.waiters++
	c.mu.Unlock()
	s, err := c.holds.await(ctx, e, nil)
	if err == nil {
		s.Release()
		c.store.closeOnDisk(k)
	}
	return err
}

package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankfs/cache/stall"
	"rankfs/meta"
)

// maxDemand bounds the opens that may wait for a worker: each is a thread of
// some process, so a job has far fewer.
const maxDemand = 1 << 16

var errClosing = fmt.Errorf("%w: the daemon is shutting down", meta.ErrBusy)

// Open returns the slab of a batch, waiting for it to be complete. The wait
// ends with ctx, or after the configured time; the fill goes on for others. The
// account, which may be nil, gets what was waited for.
func (c *Cache) Open(ctx context.Context, account *stall.Open, p Plan, rank, step uint64) (*Slab, error) {
	var wrong error
	for range 3 {
		s, err := c.open(ctx, account, p, rank, step)
		if err != nil {
			return nil, err
		}
		if wrong = s.check(); wrong == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("open batch: its slab was wrong three times; look at the disks of --nvme: %w", wrong)
}

// open holds the slab of a batch that is ready; of any other it queues the entry for
// the workers, unless they have it already, and waits.
func (c *Cache) open(ctx context.Context, account *stall.Open, p Plan, rank, step uint64) (*Slab, error) {
	start := time.Now()
	c.mu.Lock()
	if err := c.refusal(); err != nil {
		c.mu.Unlock()
		return nil, fmt.Errorf("open batch: %w", err)
	}
	tenant := c.mu.readers.tenant(p, start)
	e, mine := c.mu.slabs.entry(p, rank, step)
	s := c.join(e, p, mine, c.follow(e, p, rank, step, start), stall.Admission)
	tenant.opens(s == nil && !(mine && e.pooled))
	if s != nil {
		s.openedBy(account.By())
		c.mu.count.ready++
		c.mu.Unlock()
		return s, nil
	}
	clock := e.clock
	switch {
	case mine && e.pooled:
		if s := c.openPooled(e, account.By()); s != nil {
			return s, nil
		}
		c.mu.Lock()
	case mine:
		c.mu.queue.push(e)
	}
	c.mu.count.waited++
	c.mu.room.waits(account.By(), e)
	c.mu.Unlock()
	return c.awaitFor(ctx, account, e, clock.Wait(start))
}

// refusal is why no open may begin now, or nil. It counts the open. The cache's lock
// is held.
func (c *Cache) refusal() error {
	if c.mu.closed {
		return errClosing
	}
	c.mu.count.opens++
	if len(c.mu.queue.demand) >= maxDemand {
		c.mu.count.openErrors++
		return fmt.Errorf("%w: %d opens wait already", meta.ErrBusy, maxDemand)
	}
	return nil
}

// follow notes for its reader that a batch is opened. The cache's lock is held.
func (c *Cache) follow(e *entry, p Plan, rank, step uint64, now time.Time) (seen move) {
	seen = c.mu.readers.follow(e, p, rank, step, now)
	if seen.asks != nil {
		c.askNext(seen.asks)
	}
	if seen.misses {
		c.mu.queue.wake.Signal()
	}
	return seen
}

// join has an open hold the slab of an entry that is ready, or wait for it. If it is
// mine, the entry is the caller's to have filled. The cache's lock is held.
func (c *Cache) join(e *entry, p Plan, mine bool, seen move, with stall.Cause) *Slab {
	if e.state == ready {
		return c.hold(e)
	}
	e.waiters++
	if mine {
		c.mu.slabs.begin(e, c.mu.queue.usageOf(p, seen.expected), with)
	}
	return nil
}

// hold counts one more open of a ready entry. The cache's lock is held.
func (c *Cache) hold(e *entry) *Slab {
	e.holders++
	e.opened = true
	c.mu.count.handles++
	return &Slab{cache: c, entry: e}
}

// openPooled has an open bring its entry out of the pool itself, or returns nil if
// it has to wait. The cache's lock is held, and given back.
func (c *Cache) openPooled(e *entry, by int32) *Slab {
	c.tasks.Add(1) // before Close waits for them, as it is not closed
	defer c.tasks.Done()
	c.mu.Unlock()
	if !c.workers.unpool(e) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.waiters--
	c.mu.count.ready++
	s := c.hold(e)
	s.openedBy(by)
	return s
}

// awaitFor is await for an open, whose wait is accounted for.
func (c *Cache) awaitFor(ctx context.Context, account *stall.Open, e *entry, w stall.Wait) (*Slab, error) {
	account.Wait(w)
	s, err := c.await(ctx, e)
	split := w.Split()
	account.Resume(split)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.count.waits = c.mu.count.waits.Add(split)
	c.mu.room.waitsNoMore(account.By())
	if s != nil {
		s.openedBy(account.By())
	}
	return s, err
}

// await holds the slab of an entry when it is filled.
func (c *Cache) await(ctx context.Context, e *entry) (*Slab, error) {
	err := c.awaitDone(ctx, e)
	c.mu.Lock()
	defer c.mu.Unlock()
	e.waiters--
	if err == nil && c.mu.ended {
		err = errClosing
	}
	if e.state == ready && err == nil {
		c.mu.readers.served(e)
		return c.hold(e), nil
	}
	if err == context.DeadlineExceeded {
		err = fmt.Errorf("batch not ready after %v: %w", c.config.OpenTimeout, errors.Join(err, e.stalled))
	}
	if e.state == ready && e.waiters == 0 && e.holders == 0 {
		c.mu.setIdle(e)
	}
	c.mu.count.openErrors++
	if err == nil {
		err = e.err
	}
	return nil, err
}

// awaitDone waits until an entry is ready or failed.
func (c *Cache) awaitDone(ctx context.Context, e *entry) error {
	timer := time.NewTimer(c.config.OpenTimeout)
	defer timer.Stop()
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return context.DeadlineExceeded
	case <-c.ctx.Done():
		return errClosing
	}
}

// Part returns a slab that a Fill wants to copy from, one of a plan that is
// shared. A part that is not there is filled by the caller: a fill that left
// that to another worker could wait for itself.
//
// It never waits for memory, as its caller holds some. An error that wraps
// meta.ErrNoSpace means that there is none: go to the source for the bytes.
// Parts that are read in order, one after the other, count as opens of their plan's
// rank, and the next ones are made ready ahead. Of others, as a shuffle copies from
// them, nothing is foretold: they stay by when they were used last.
func (c *Cache) Part(ctx context.Context, p Plan, rank, step uint64, inOrder bool) (*Slab, error) {
	now := time.Now()
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		return nil, fmt.Errorf("part of a batch: %w", errClosing)
	}
	e, mine := c.mu.slabs.entry(p, rank, step)
	var seen move
	if inOrder {
		seen = c.follow(e, p, rank, step, now)
	}
	s := c.join(e, p, mine, seen, stall.Plan)
	if s != nil {
		c.mu.Unlock()
		return s, nil
	}
	clock := e.clock
	c.mu.Unlock()
	defer stall.Follow(ctx, clock)() // an open that waits for the batch waits for its part
	if mine {
		c.workers.make(e, false)
	}
	return c.await(ctx, e)
}

// askNext asks a plan for that of the epoch after it, which may take a while. The
// cache's lock is held.
func (c *Cache) askNext(j *job) {
	if c.mu.closed {
		return
	}
	j.asked = true
	p := j.plan
	c.tasks.Go(func() {
		next := p.Next()
		c.mu.Lock()
		defer c.mu.Unlock()
		j.next = next
		c.mu.readers.tenants.succeed(j.plan, next)
		c.mu.queue.wake.Signal()
	})
}

package cache

import (
	"context"
	"fmt"
	"time"

	"rankfs/meta"
	"rankfs/meta/stall"
)

// maxDemand bounds the opens that may wait for a worker: each is a thread of
// some process, so a job has far fewer.
const maxDemand = 1 << 16

// Open returns the slab of a batch, whose key is k, waiting for it to be complete. The
// wait ends with ctx, or after the configured time; the fill goes on for others. The
// account, which may be nil, gets what was waited for.
//
// A slab that is there is found by its key alone: the series, which may have to divide an
// epoch to say a key, is asked for it by the caller.
func (c *Cache) Open(ctx context.Context, account *stall.Open, of *Series, rank, step uint64, k Key) (*Slab, error) {
	var wrong error
	for range 3 {
		s, err := c.open(ctx, account, of, rank, step, k)
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
func (c *Cache) open(ctx context.Context, account *stall.Open, of *Series, rank, step uint64, k Key) (*Slab, error) {
	start := time.Now()
	c.mu.Lock()
	if err := c.refusal(); err != nil {
		c.mu.Unlock()
		return nil, fmt.Errorf("open batch: %w", err)
	}
	tenant := c.mu.readers.tenant(of, start)
	on := c.mu.readers.tenants.account(tenant)
	e, mine := c.mu.slabs.entry(of, k, rank, step)
	seen := c.holds.follow(e, of, rank, step, on, start)
	tenant.opens(e.state != ready && !(mine && e.inSlot), seen.expected)
	if e.state == ready {
		s := c.holds.hold(e)
		s.openedBy(account.By())
		c.mu.count.OpensReady++
		c.mu.Unlock()
		return s, nil
	}
	c.holds.join(e, on.part(seen.expected), mine, stall.Admission)
	clock := e.clock
	switch {
	case mine && e.inSlot:
		if s := c.openFromSlot(e, account.By()); s != nil {
			return s, nil
		}
		c.mu.Lock()
	case mine:
		c.mu.queue.push(e)
	}
	c.mu.count.OpensWaited++
	c.mu.room.waits(account.By(), e)
	c.mu.Unlock()
	return c.awaitFor(ctx, account, e, clock.Wait(start))
}

// refusal is why no open may begin now, or nil. It counts the open. The cache's lock
// is held.
func (c *Cache) refusal() error {
	if c.mu.life.closed {
		return errClosing
	}
	c.mu.count.Opens++
	if c.mu.queue.length >= maxDemand {
		return fmt.Errorf("%w: %d opens wait already", meta.ErrBusy, maxDemand)
	}
	return nil
}

// openFromSlot has an open bring its entry out of its slot itself, or returns nil if
// it has to wait. The cache's lock is held, and given back.
func (c *Cache) openFromSlot(e *entry, by int32) *Slab {
	c.tasks.Add(1) // before Close waits for them, as it is not closed
	defer c.tasks.Done()
	c.mu.Unlock()
	if !c.workers.fillFromSlot(e) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.waiters--
	c.mu.count.OpensReady++
	s := c.holds.hold(e)
	s.openedBy(by)
	return s
}

// awaitFor is await for an open, whose wait is accounted for.
func (c *Cache) awaitFor(ctx context.Context, account *stall.Open, e *entry, w stall.Wait) (*Slab, error) {
	account.Wait(w)
	s, err := c.holds.await(ctx, e, nil)
	account.Resume(w.ByCause())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.room.waitsNoMore(account.By())
	if s != nil {
		s.openedBy(account.By())
	}
	return s, err
}

// Input returns the slab of an input for another node, which copies from it. An error that
// wraps meta.ErrNoSpace means that there is no room for it: go to the source for the
// bytes. It never waits for memory.
func (c *Cache) Input(ctx context.Context, s *Series, rank, step uint64, inOrder bool) (*Slab, error) {
	return c.inputs.open(ctx, Input{Series: s, Rank: rank, Step: step, InOrder: inOrder}, nil)
}

package cache

import (
	"context"
	"errors"
	"time"
)

// A reader is one rank going through one plan, as its opens show it.
type reader struct {
	plan   Plan
	rank   uint64
	at     uint64        // the step opened last
	size   int64         // of a batch, as last seen; zero if none was ready yet
	seen   time.Time     // when
	pace   time.Duration // between its opens; zero until there were two in order
	run    int           // opens in order, one step after the other
	next   uint64        // no step from at to here is missing
	barred uint64        // nothing is made ready from this step on; above at
	bar    bool
}

type readerKey struct {
	plan [16]byte
	rank uint64
}

// maxReaders bounds how many ranks are followed at once on one node.
const maxReaders = 4096

// follow notes that a rank opens the batch of e. mu is held.
func (c *Cache) follow(e *entry, now time.Time) {
	p, rank, step := e.plan, e.key.Rank, e.key.Step
	k := readerKey{e.key.Plan, rank}
	r := c.mu.readers[k]
	if r == nil {
		if len(c.mu.readers) >= maxReaders {
			c.forget(now)
		}
		if len(c.mu.readers) >= maxReaders {
			return
		}
		r = &reader{plan: p, rank: rank}
		c.mu.readers[k] = r
	} else if step == r.at+1 {
		r.run++
		r.pace = blend(r.pace, now.Sub(r.seen))
	} else if step != r.at {
		r.run, r.pace, r.next = 0, 0, 0 // a jump: a resume, or a person looking around
	}
	r.next = max(r.next, step+1)
	if step+1 == p.Steps() {
		delete(c.mu.readers, k) // it is through
		return
	}
	if e.state == ready {
		r.size = e.size
	}
	r.plan, r.at, r.seen, r.bar = p, step, now, false
	if _, ok := c.missing(r); ok { // waking a worker for nothing costs the rank 10 us
		c.wake.Signal()
	}
}

// forget drops the readers that have been silent for long. mu is held.
func (c *Cache) forget(now time.Time) {
	for k, r := range c.mu.readers {
		if now.Sub(r.seen) > c.config.Idle {
			delete(c.mu.readers, k)
		}
	}
}

// ahead picks the batch that is needed soonest and not there or on its way,
// and enters it. mu is held.
func (c *Cache) ahead() *entry {
	var (
		best *reader
		next uint64
		due  time.Duration
		now  = time.Now()
	)
	c.forget(now)
	for _, r := range c.mu.readers {
		step, ok := c.missing(r)
		if !ok {
			continue
		}
		in := time.Duration(step-r.at)*r.pace - now.Sub(r.seen)
		if best == nil || in < due {
			best, next, due = r, step, in
		}
	}
	if best == nil {
		return nil
	}
	c.mu.count.prefetched++
	return c.want(best.plan, best.rank, next)
}

// missing is the first step in a reader's window that nobody has begun.
func (c *Cache) missing(r *reader) (step uint64, ok bool) {
	last := min(r.at+c.window(r), r.plan.Steps()-1)
	if r.bar {
		last = min(last, r.barred-1)
	}
	for ; r.next <= last; r.next++ {
		if c.mu.entries[Key{r.plan.ID(), r.rank, r.next}] == nil && r.plan.Ahead(r.rank, r.next) {
			return r.next, true
		}
	}
	return 0, false
}

// unread notes that a batch made ready ahead is given up. mu is held.
func (c *Cache) unread(e *entry) {
	if r := c.mu.readers[readerKey{e.key.Plan, e.key.Rank}]; r != nil && e.key.Step > r.at {
		r.next = min(r.next, e.key.Step)
	}
}

// window is how many steps ahead of a reader are worth having: as many as it
// consumes while one is made, and one more. It grows with trust: one open may
// be somebody's cat. All readers share the memory evenly.
func (c *Cache) window(r *reader) uint64 {
	size := max(pages(r.size), 1)
	share := c.config.RAMBytes / int64(max(1, len(c.mu.readers))) / size
	fit := max(1, share-2) // beside the one being read and the one just read
	want := int64(1 + r.run)
	if r.pace > 0 && r.run > 1 {
		want = int64(c.mu.speed.duration(float64(size))/r.pace) + 3
	}
	return uint64(max(1, min(want, fit, int64(c.config.MaxAhead))))
}

// balk notes that a fill ahead of its reader failed: there is no use in trying
// again before the rank has moved. mu is held.
func (c *Cache) balk(k Key, err error) {
	if r := c.mu.readers[readerKey{k.Plan, k.Rank}]; r != nil && k.Step > r.at {
		r.barred, r.bar = k.Step, true
		r.next = min(r.next, k.Step)
		if !errors.Is(err, errNoRoom) && !errors.Is(err, context.Canceled) {
			c.config.Log.Debug("batch not made ready ahead", "rank", k.Rank, "step", k.Step, "cause", err)
		}
	}
}

// lead is how far an unread entry is ahead of its reader; what no reader is
// heading for is furthest. mu is held.
func (c *Cache) lead(e *entry) uint64 {
	r := c.mu.readers[readerKey{e.key.Plan, e.key.Rank}]
	if r == nil || e.key.Step <= r.at {
		return ^uint64(0)
	}
	return e.key.Step - r.at
}

// A rate is a running mean of amounts over time.
type rate struct{ perSecond float64 }

func (r *rate) add(amount float64, took time.Duration) {
	now := amount / max(took.Seconds(), 1e-6)
	if r.perSecond == 0 {
		r.perSecond = now
	}
	r.perSecond += (now - r.perSecond) / 8
}

func (r *rate) duration(amount float64) time.Duration {
	if r.perSecond == 0 {
		return 0
	}
	return time.Duration(amount / r.perSecond * float64(time.Second))
}

func blend(old, now time.Duration) time.Duration {
	if old == 0 {
		return now
	}
	return old + (now-old)/4
}

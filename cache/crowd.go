package cache

import (
	"fmt"
	"time"

	"rankfs/meta"
)

// A Crowd is why opens wait for memory: ranks have so much of it open, or mapped,
// that a batch does not fit beside it, and there is no disk to serve it from. It
// wraps meta.ErrNoSpace.
type Crowd struct {
	Batches int   // that are open
	Held    int64 // what these take, and what is only mapped
	Size    int64 // of the one that is waited for
	Memory  int64
	Stuck   bool // those who hold it wait in such opens themselves
}

func (c *Crowd) Error() string {
	text := fmt.Sprintf("ranks hold or map %d bytes of memory, in %d open batches, and another of %d bytes does not fit beside them in %d",
		c.Held, c.Batches, c.Size, c.Memory)
	if c.Stuck {
		text += ", nor will it, as those who hold them wait in opens themselves"
	}
	return text + ": " + meta.ErrNoSpace.Error()
}

func (c *Crowd) Unwrap() error { return meta.ErrNoSpace }

const (
	crowdWait = time.Second // how long an open goes without room before that is looked into, and how often
	crowdTell = time.Minute // how often it is told
)

// Crowds knows which opens find no room, and who has it. Ranks that compute with
// a batch and ranks that hold one for good look alike, so a wait goes on as long
// as any wait; it is only told. But who waits in an open cannot close what it has:
// if all of memory is of such threads, the wait is refused. It is guarded by the
// cache's lock.
type crowds struct {
	waits map[int32]*entry // by thread
	last  Crowd
	seen  time.Time // when last was so
	told  time.Time
}

// roomQueue has the fills that wait for memory.
type roomQueue struct {
	config *Config
	slabs  *slabs
	queue  *queue
	line   []*entry      // being made, and waiting for room, in order of arrival: no more than workers
	token  chan struct{} // one: a slab was given back, or may have been
	crowds crowds
}

// waits notes which entry a thread waits for.
func (rm *roomQueue) waits(thread int32, e *entry) {
	if thread != 0 {
		rm.crowds.waits[thread] = e
	}
}

func (rm *roomQueue) waitsNoMore(thread int32) { delete(rm.crowds.waits, thread) }

// A holding is a batch that is open in a thread that waits in another open.
type holding struct {
	thread     int32
	rank, step uint64
	bytes      int64
	wants      *entry
}

// crowd looks once in crowdWait at what a fill that finds no room waits for. It
// has it told, or returns it if no wait would help.
func (a *admission) crowd(e *entry, now time.Time) error {
	if a.nvme != nil {
		return nil
	}
	if e.looked.IsZero() {
		e.looked = now
	}
	if now.Sub(e.looked) < crowdWait {
		return nil
	}
	e.looked = now
	ram, _ := a.ram.stats()
	a.mu.Lock()
	its, stuck, tell := a.mu.room.crowded(e, ram.Dying, now)
	a.mu.Unlock()
	if its == nil {
		return nil
	}
	if a.stuck(stuck, e.size) {
		its.Stuck = true
		return its
	}
	if tell && a.config.Crowded != nil {
		a.config.Crowded(e.plan, its)
	}
	return nil
}

// crowded is the crowd that an entry waits for, if it is one, and what of it is
// held by threads that wait.
func (rm *roomQueue) crowded(e *entry, mapped int64, now time.Time) (its *Crowd, stuck []holding, tell bool) {
	its = &Crowd{Held: mapped, Size: e.size, Memory: rm.config.RAMBytes}
	queued, starved := make(map[*entry]bool), 0
	for _, h := range rm.queue.demand {
		queued[h] = true
	}
	for _, h := range rm.slabs.entries {
		if h.state == filling && h.stalled != nil && !queued[h] {
			starved++
		}
	}
	for _, h := range rm.slabs.entries {
		if h.holders == 0 || !h.inMemory() {
			continue
		}
		its.Batches, its.Held = its.Batches+1, its.Held+pages(h.size)
		for _, thread := range h.threads {
			wants := rm.crowds.waits[thread]
			// What is queued waits for the workers, which may all wait for room.
			waits := wants != nil && wants.state == filling && (wants.stalled != nil || queued[wants] && starved >= rm.config.Workers)
			if !waits {
				continue
			}
			if rank, step, ok := h.plan.Find(h.key); ok {
				stuck = append(stuck, holding{thread, rank, step, pages(h.size), wants})
				break
			}
		}
	}
	if its.Held+pages(e.size) <= its.Memory {
		return nil, nil, false
	}
	k := &rm.crowds
	if tell = k.told.IsZero() || now.Sub(k.told) >= crowdTell; tell {
		k.told = now
	}
	k.last, k.seen = *its, now
	return its, stuck, tell
}

// stuck reports whether so much is held by threads that wait that neither a batch
// of a size nor the smallest that these wait for has room: then none of them goes on
// before one is refused. A process of several threads may close a batch in
// another one, so it does not count.
func (a *admission) stuck(all []holding, size int64) bool {
	if a.config.Holds == nil {
		return false
	}
	held := int64(0)
	for _, h := range all {
		if a.config.Holds(h.thread, h.rank, h.step) {
			held += h.bytes
			size = min(size, h.wants.plan.Size(h.wants.rank, h.wants.step))
		}
	}
	return held+pages(size) > a.config.RAMBytes
}

// Crowd is what an open waits for now, if there is no room for it.
func (c *Cache) Crowd() *Crowd {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := &c.mu.room.crowds
	if k.seen.IsZero() || time.Since(k.seen) >= 2*crowdWait {
		return nil
	}
	last := k.last
	return &last
}

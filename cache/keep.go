package cache

import (
	"container/heap"
	"math"
	"time"

	"rankfs/cache/policy"
)

// An idle heap holds entries that nobody holds, the one worth least on top.
type idle []*entry

func (h idle) Len() int           { return len(h) }
func (h idle) Less(i, j int) bool { return h[i].worth < h[j].worth }
func (h idle) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot, h[j].slot = i, j
}

// Push and Pop are heap.Interface's.
func (h *idle) Push(x any) {
	e := x.(*entry)
	e.slot = len(*h)
	*h = append(*h, e)
}

func (h *idle) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h, e.slot = old[:len(old)-1], away
	return e
}

// away is the slot of an entry that is not on the heap.
const away = -1

// rest puts an entry that nobody holds where a victim is looked for. mu is held.
func (c *Cache) rest(e *entry) {
	now := time.Now()
	if e.opened {
		if !e.last.IsZero() {
			e.gap = blend(e.gap, now.Sub(e.last))
		}
		e.last = now
	}
	e.worth = c.worth(e)
	if b := c.mu.blobs[e.key]; b != nil && b.slot != away {
		b.last, b.gap = e.last, e.gap
		b.worth = c.worth(b)
		heap.Fix(&c.mu.idle, b.slot)
	}
	if e.stale || e.opened && c.passes(e) && !e.plan.Shared() {
		e.place = c.mu.spent.PushBack(e)
	} else {
		heap.Push(&c.mu.idle, e)
	}
	select {
	case c.room <- struct{}{}:
	default:
	}
}

// passes reports whether e is of no use to anybody once it was read, as nobody
// pinned it. mu is held.
func (c *Cache) passes(e *entry) bool {
	return e.plan.Once() && c.mu.pins[e.key.Plan] == policy.Source
}

// pick takes an entry from where rest put it. mu is held.
func (c *Cache) pick(e *entry) {
	if e.place != nil {
		c.mu.spent.Remove(e.place)
		e.place = nil
	}
	if e.slot != away {
		heap.Remove(&c.mu.idle, e.slot)
	}
}

// victim takes the entry that is to go next out of the cache, or returns nil:
// what is spent, in order, and then what is worth least. One that a rank waits
// for may take anything's place, another only that of what is worth less. mu
// must not be held.
func (c *Cache) victim(newcomer *entry, demanded bool) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.mu.spent.Front(); p != nil {
		return c.remove(p.Value.(*entry))
	}
	if len(c.mu.idle) == 0 {
		return nil
	}
	e := c.mu.idle[0]
	if !demanded && (e.worth >= c.worth(newcomer) || c.precedes(e, newcomer)) {
		return nil
	}
	return c.remove(e)
}

// victimOnNVMe takes an entry that nobody holds and whose slab is on NVMe, in that
// directory or in any if it is empty, out of the cache: in it the slab cannot be
// evicted.
func (c *Cache) victimOnNVMe(dir string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	fits := func(e *entry) bool { return e.file != nil && (dir == "" || e.file.Dir() == dir) }
	for p := c.mu.spent.Front(); p != nil; p = p.Next() {
		if e := p.Value.(*entry); fits(e) {
			return c.remove(e)
		}
	}
	for _, e := range c.mu.idle {
		if fits(e) {
			return c.remove(e)
		}
	}
	return nil
}

// precedes reports whether e waits for a reader that comes to it before n, or if
// n is made ready by hand, for any reader, or as long as n. Worths are estimates
// of different times: two batches that are made ready ahead could otherwise take
// each other's place again and again. mu is held.
func (c *Cache) precedes(e, n *entry) bool {
	if n.byHand {
		return e.byHand && !e.opened || c.comesTo(e.key)
	}
	next := c.nextUse(e)
	return !e.opened && !math.IsInf(next, 1) && next <= c.nextUse(n)
}

// worn returns the oldest spent entry, out of the cache, if more of them linger
// than each reader's last one. They are filled anew before fresh memory is
// taken: it need not be zeroed, it is mapped, and it is in the processor's
// cache, which fresh memory is not.
func (c *Cache) worn() *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.spent.Len() <= c.mu.readers {
		return nil
	}
	return c.remove(c.mu.spent.Front().Value.(*entry))
}

// remove takes a resting entry out of the cache. mu is held.
func (c *Cache) remove(e *entry) *entry {
	c.pick(e)
	if e.blob {
		delete(c.mu.blobs, e.key)
		return e
	}
	if c.mu.entries[e.key] == e {
		delete(c.mu.entries, e.key)
		c.lost(e)
	}
	return e
}

// worth is what it is worth to keep e in memory, as the planner has it. mu is held.
func (c *Cache) worth(e *entry) float64 {
	item := c.item(e)
	return c.mu.planner.Worth(&item, c.nextUse(e))
}

// item is what a planner wants to know of e. If its bytes are in memory in
// another form too, that is all that is lost with it. mu is held.
func (c *Cache) item(e *entry) policy.Item {
	i := policy.Item{Now: e.level(), Group: -1, Job: -1, Last: c.seconds(e.last), Floor: c.mu.pins[e.key.Plan]}
	i.Bytes[policy.Packed], i.Wait[policy.Source] = e.real, e.took.Seconds()
	describe(&i, e.size, c.mu.packing[e.key.Plan], &c.mu.speeds, c.nvme != nil)
	if !e.blob && c.mu.blobs[e.key] != nil {
		i.Wait[policy.Source], i.Floor = i.Wait[policy.Packed], policy.Source
	}
	return i
}

// seconds is a time on the planner's clock.
func (c *Cache) seconds(t time.Time) float64 {
	if t.IsZero() {
		return -1
	}
	return t.Sub(c.began).Seconds()
}

// nextUse is when e will be opened again, as far as anybody can know: when a
// reader comes to it, in this epoch or the next one; or else, if it was used
// before, after as long as it took last time. mu is held.
func (c *Cache) nextUse(e *entry) float64 {
	if e.waiters > 0 {
		return 0 // before anything that was guessed
	}
	next := math.Inf(1)
	for _, j := range c.mu.jobs {
		if at, ok := j.comesTo(e.key); ok {
			next = min(next, c.seconds(at))
		}
	}
	if math.IsInf(next, 1) && e.gap > 0 {
		next = c.seconds(e.last) + e.gap.Seconds()
	}
	return next
}

// comesTo reports whether any reader comes to the batch of k. mu is held.
func (c *Cache) comesTo(k Key) bool {
	for _, j := range c.mu.jobs {
		if _, ok := j.comesTo(k); ok {
			return true
		}
	}
	return false
}

// comesTo is when a reader of j opens the batch of k. mu is held.
func (j *job) comesTo(k Key) (at time.Time, ok bool) {
	if rank, step, is := j.plan.Find(k); is {
		if r := j.readers[rank]; r != nil && r.run >= trusted && step >= r.pos {
			return r.course.at(step), true
		}
	}
	if j.next == nil {
		return at, false
	}
	if rank, step, is := j.next.Find(k); is {
		if r := j.readers[rank]; r != nil && r.run >= trusted {
			return r.course.at(j.plan.Steps() + step), true
		}
	}
	return at, false
}

// setCourse guesses anew when readers come to what they read, if the guesses in
// use are far off, and puts what is idle in order again. mu is held.
func (c *Cache) setCourse() {
	off := false
	for _, j := range c.mu.jobs {
		for _, r := range j.readers {
			if r.run > trusted && r.course.strays(r) {
				r.course, off = course{r.seen, int64(r.pos) - 1, r.course.mean(r)}, true
			}
		}
	}
	if !off {
		return
	}
	for _, e := range c.mu.idle {
		e.worth = c.worth(e)
	}
	heap.Init(&c.mu.idle)
}

package cache

import (
	"math"
	"time"

	"rankfs/cache/fair"
)

// KeepFiles sets how many idle files the memory tier keeps. It is to be called before
// anything is opened.
func (c *Cache) KeepFiles(n int) { c.ram.idleFiles = n }

// Readers is how many readers are followed.
func (c *Cache) Readers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.readers.dropSilent(time.Now())
	return c.mu.readers.count
}

// Tenants is how many jobs share memory.
func (c *Cache) Tenants() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.readers.tenants.of)
}

// Standings are those of the series whose tenants are known, that have one.
func (c *Cache) Standings() (all []fair.Standing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.eviction.weigh(time.Now())
	for _, t := range c.mu.readers.tenants.of {
		if t.standing != (fair.Standing{}) {
			all = append(all, t.standing)
		}
	}
	return all
}

// Least is what the batch is worth that is to go first, and the least that any that is idle is
// worth, if each is asked for.
func (c *Cache) Least() (first, of float64, idle int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, ev := time.Now(), &c.mu.eviction
	_, first, _ = ev.least(nil, now)
	of = math.Inf(1)
	for id := range c.mu.slabs.idle.all() {
		b := c.mu.slabs.idle.at(id)
		of = min(of, ev.worthAt(&b, ev.nextUse(&b, now)))
		idle++
	}
	return first, of, idle
}

// EachIdle calls f with what finds the place in the order of eviction of each batch that is
// idle, under the cache's lock.
func (c *Cache) EachIdle(f func(place func())) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.mu.slabs.idle.all() {
		b := c.mu.slabs.idle.at(id)
		f(func() { c.mu.eviction.place(&b, time.Now()) })
	}
}

// Files is how many files of memory have a descriptor.
func (c *Cache) Files() int {
	c.ram.mu.Lock()
	defer c.ram.mu.Unlock()
	return c.ram.files()
}

// MaxTraced bounds the traces.
const MaxTraced = maxTraced

// ChosenDisk is how much of the disks the last choice could give to slabs. What chooses
// must be at rest.
func (c *Cache) ChosenDisk() int64 { return c.choosing.drawn.Disk }

// HoldMover has nothing be brought to another level, nor copied ahead, until it is let go.
// The mover must be at rest.
func (c *Cache) HoldMover() (letGo func()) {
	held := c.mover.token
	c.mover.token = make(chan struct{}, 1)
	return func() { held <- struct{}{} }
}

// HoldChoices has no choice be asked for: the next one is made when it is due. What
// chooses must be at rest.
func (c *Cache) HoldChoices() { c.choosing.stale = make(chan struct{}, 1) }

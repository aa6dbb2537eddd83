package cache

import (
	"rankfs/cache/disks"
	"rankfs/cache/policy"
)

// A standing is what keeps a slab on disk.
type standing uint8

const (
	needless standing = iota // it is in memory, or the planner has better things
	possible                 // the planner has said nothing of it, or wants it in memory
	planned                  // to be on disk
	pinned                   // by somebody
)

// stands is the standing of a slab. mu is held.
func (ev *eviction) stands(k Key) standing {
	at, known := ev.strategy.targets.of(k)
	there, ok := ev.slabs.ready(k)
	switch {
	case ev.strategy.pins[k.Plan] != policy.Source:
		return pinned
	case known && at == policy.Disk:
		return planned
	case known && at == policy.Source, ok && there.inMemory():
		return needless
	}
	return possible
}

// first reports whether a is to make way on disk before b.
func (st *store) first(a, b disks.Key) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.mu.eviction.stands(Key(a)) < st.mu.eviction.stands(Key(b))
}

// yields says which slabs on disk may make way for a copy of e: what stands for
// less, and of what nobody has decided on the one used longest ago. Where all are
// as good, none is: in an epoch that is longer than the disk, each would make way
// for the next just before its turn.
func (st *store) yields(e *entry) func(disks.Key) bool {
	st.mu.Lock()
	mine := st.mu.eviction.stands(e.key)
	st.mu.Unlock()
	return func(k disks.Key) bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		its := st.mu.eviction.stands(Key(k))
		return its < mine || its == possible && mine == possible
	}
}

// spare says which slabs on disk may make way for e: not those that a reader
// comes to, nor those that somebody said should be there, if nobody waits for e.
func (w *workers) spare(e *entry) func(disks.Key) bool {
	if !e.byHand || w.waitedFor(e) {
		return nil
	}
	return func(k disks.Key) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return k.Plan != e.key.Plan && w.mu.strategy.pins[k.Plan] == policy.Source && !w.mu.readers.comesTo(Key(k))
	}
}

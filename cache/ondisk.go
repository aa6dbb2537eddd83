package cache

import (
	"rankfs/cache/disks"
	"rankfs/cache/policy"
)

// A diskClaim is the reason to keep a slab on disk; a greater one is stronger.
type diskClaim uint8

const (
	unneeded  diskClaim = iota // it is in memory, or the planner has better things
	undecided                  // the planner has said nothing of it, or wants it in memory
	planned                    // to be on disk
	pinned                     // by hand
)

// claimOnDisk is the reason to keep the slab of k on disk.
func (ev *eviction) claimOnDisk(k Key) diskClaim {
	at, known := ev.strategy.targets.of(k)
	there, ok := ev.slabs.ready(k)
	switch {
	case ev.strategy.pins[k.Plan] != policy.Source:
		return pinned
	case known && at == policy.Disk:
		return planned
	case known && at == policy.Source, ok && there.inMemory():
		return unneeded
	}
	return undecided
}

// goesFirst reports whether a is to make way on disk before b.
func (st *store) goesFirst(a, b disks.Key) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.mu.eviction.claimOnDisk(Key(a)) < st.mu.eviction.claimOnDisk(Key(b))
}

// replaceable says which slabs on disk may be evicted for a copy of k: those with a
// lesser claim, and of the undecided ones the least recently used. Where all claims
// are equal, none may: in an epoch larger than the disk, each slab would be evicted
// for the next just before it is read.
func (st *store) replaceable(k Key) func(disks.Key) bool {
	st.mu.Lock()
	mine := st.mu.eviction.claimOnDisk(k)
	st.mu.Unlock()
	return func(other disks.Key) bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		its := st.mu.eviction.claimOnDisk(Key(other))
		return its < mine || its == undecided && mine == undecided
	}
}

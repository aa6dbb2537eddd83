package cache

import (
	"time"

	"rankfs/cache/policy"
)

// A diskReason is the reason to keep a slab on disk; a greater one is stronger.
type diskReason uint8

const (
	unneeded  diskReason = iota // it is in memory, or the policy has better things
	undecided                   // the policy has said nothing of it, or wants it in memory
	wanted                      // on disk
	pinned                      // by hand
)

// reasonOnDisk is the reason for the slab of k to be on disk.
func (ev *eviction) reasonOnDisk(k Key) diskReason {
	at, known := ev.strategy.targets.of(k)
	there, ok := ev.slabs.ready(k)
	switch {
	case ev.strategy.pins[k.Series] != policy.Source:
		return pinned
	case known && at == policy.Disk:
		return wanted
	case known && at == policy.Source, ok && there.inMemory():
		return unneeded
	}
	return undecided
}

// goesFirst reports whether a is to make way on disk before b.
func (st *store) goesFirst(a, b Key) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.mu.eviction.reasonOnDisk(a) < st.mu.eviction.reasonOnDisk(b)
}

// replaceable says which slabs on disk may be evicted for a copy of k: those with a
// lesser reason, and of the undecided ones the least recently used. Where all reasons
// are equal, none may: in an epoch larger than the disk, each slab would be evicted
// for the next just before it is read.
func (st *store) replaceable(k Key) func(Key) bool {
	st.mu.Lock()
	mine := st.mu.eviction.reasonOnDisk(k)
	st.mu.Unlock()
	return func(other Key) bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		its := st.mu.eviction.reasonOnDisk(other)
		return its < mine || its == undecided && mine == undecided
	}
}

func (st *store) worthWriting(b *batch) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.mu.eviction.worthWriting(b)
}

// write keeps a copy of a slab on NVMe.
func (st *store) write(e *entry, mem []byte) {
	if st.nvme == nil || st.nvme.Has(e.key) {
		return
	}
	start := time.Now()
	if err := st.nvme.Put(e.key, mem, st.replaceable(e.key)); err != nil {
		st.config.Log.Debug("slab not kept on nvme", "cause", err)
		return
	}
	st.written(e.size, time.Since(start))
}

// writePacked keeps a copy of a packed slab on NVMe, if that costs less than to have it
// from its source again, and reports whether it did. It takes no memory: the slab is
// unpacked into its file.
func (st *store) writePacked(b batch) bool {
	if st.nvme == nil || !st.worthWriting(&b) || st.nvme.Has(b.key) {
		return false
	}
	start := time.Now()
	err := st.nvme.Fill(b.key, b.size, func(mem []byte) error {
		return st.packed.store.Get(b.number, nameOf(b.key), mem)
	}, st.replaceable(b.key))
	if err != nil {
		st.config.Log.Debug("packed slab not kept on nvme", "cause", err)
		return false
	}
	st.written(b.size, time.Since(start))
	return true
}

// written notes how long a disk took to write a slab.
func (st *store) written(size int64, took time.Duration) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.mu.rates.writes.add(float64(size), took)
}

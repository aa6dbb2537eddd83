package cache

import (
	"context"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/policy"
)

// A store gives slabs up that are in the cache no more, and makes copies of them
// before, where the planner wants such: packed in memory, or on a disk. A slab that it
// is given belongs to the caller alone, or is held. It takes the cache's lock to ask
// what is wanted and to say what it did, never while bytes are copied.
type store struct {
	*tiers
	mu          *guarded
	descriptors *descriptors
	ctx         context.Context
}

// evict gives up a slab. One in memory that an epoch may have again is kept in
// the form that the planner wants; if it has not said, on NVMe, if there is such
// a tier: its disk then sets the pace, as long as what is read does not fit in
// memory. One that is packed goes to NVMe where that pays.
func (st *store) evict(e *entry) {
	switch {
	case e.packed:
		st.writePacked(e.batch)
	case e.inMemory() && st.mayRecur(e):
		st.mu.Lock()
		if st.mu.eviction.needsCopy(&e.batch) {
			st.mu.count.late++
		}
		st.mu.Unlock()
		st.keepCopy(e)
	}
	st.drop(e)
}

// evictToDisk is evict to make room for another slab to be packed.
func (st *store) evictToDisk(e *entry) {
	switch at, known := st.target(e.key); {
	case e.packed:
		st.writePacked(e.batch)
	case e.inMemory() && st.nvme != nil && (!known || at >= policy.Disk) && st.mayRecur(e):
		if mem, done, err := st.descriptors.content(e); err == nil {
			st.write(e, mem)
			done()
		}
	}
	st.drop(e)
}

// mayRecur reports whether e may be wanted again, and is not packed.
func (st *store) mayRecur(e *entry) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return !st.mu.eviction.readOnce(&e.batch) && !st.mu.slabs.isPacked(e.key)
}

// target is where the planner wants a batch to be, if it knows of it.
func (st *store) target(k Key) (at policy.Level, known bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.mu.strategy.targets.of(k)
}

// keepCopy makes the copy of a slab in memory that is to be there when it has gone.
func (st *store) keepCopy(e *entry) {
	mem, done, err := st.descriptors.content(e)
	if err != nil {
		st.config.Log.Warn("slab not kept", "cause", err)
		return
	}
	defer done()
	if err := st.packed.offer(e.plan.Dataset(), mem); err != nil {
		st.config.Log.Debug("codecs not tried", "cause", err)
	}
	at, known := st.target(e.key)
	if at >= policy.Packed && st.pack(e, mem) { // as it is there is no room for it, whatever was planned
		return
	}
	if !known || at >= policy.Disk {
		st.write(e, mem)
	}
}

// drop gives up a slab in any form.
func (st *store) drop(e *entry) {
	if e.packed {
		st.packed.drop(e.number)
	} else {
		st.descriptors.discard(e)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.mu.count.evicted++
}

// write keeps a copy of a slab on NVMe.
func (st *store) write(e *entry, mem []byte) {
	if st.nvme == nil || st.nvme.Has(disks.Key(e.key)) {
		return
	}
	start := time.Now()
	if err := st.nvme.Put(disks.Key(e.key), mem, st.replaceable(e.key)); err != nil {
		st.config.Log.Debug("slab not kept on nvme", "cause", err)
		return
	}
	st.written(e.size, time.Since(start))
}

// writePacked keeps a copy of a packed slab on NVMe, if that costs less than to have it
// from its source again, and reports whether it did. It takes no memory: the slab is
// unpacked into its file.
func (st *store) writePacked(b batch) bool {
	if st.nvme == nil || !st.worthWriting(&b) || st.nvme.Has(disks.Key(b.key)) {
		return false
	}
	start := time.Now()
	err := st.nvme.Fill(disks.Key(b.key), b.size, func(mem []byte) error {
		return st.packed.store.Get(b.number, nameOf(b.key), mem)
	}, st.replaceable(b.key))
	if err != nil {
		st.config.Log.Debug("packed slab not kept on nvme", "cause", err)
		return false
	}
	st.written(b.size, time.Since(start))
	return true
}

func (st *store) worthWriting(b *batch) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.mu.eviction.worthWriting(b)
}

// written notes how long a disk took to write a slab.
func (st *store) written(size int64, took time.Duration) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.mu.rates.writes.add(float64(size), took)
}

// closeOnDisk closes a slab on disk that is idle: there may be more of them than files
// that can be open.
func (st *store) closeOnDisk(k Key) {
	st.mu.Lock()
	var e *entry
	if id := st.mu.slabs.idle.find(k, false); id != 0 && st.mu.slabs.idle.file(id) != nil {
		e = st.mu.eviction.remove(id)
	}
	st.mu.Unlock()
	if e != nil {
		st.descriptors.discard(e)
	}
}

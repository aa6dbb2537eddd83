package cache

import (
	"context"

	"rankfs/cache/policy"
)

// A store gives slabs up that are in the cache no more, and makes copies of them
// before, where the policy wants such: packed in memory, or on a disk. A slab that it
// is given belongs to the caller alone, or is held. It takes the cache's lock to ask
// what is wanted and to say what it did, never while bytes are copied.
type store struct {
	*tiers
	mu          *guarded
	descriptors *descriptors
	ctx         context.Context
	learnt      chan<- struct{} // one token, for choosing
}

// mayRecur reports whether e may be wanted again, and is not packed.
func (st *store) mayRecur(e *entry) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return !st.mu.eviction.readOnce(&e.batch) && !st.mu.slabs.isPacked(e.key)
}

// target is where the policy wants a batch to be, if it knows of it.
func (st *store) target(k Key) (at policy.Level, known bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.mu.strategy.targets.of(k)
}

// learn says that something is known now that the last choice did not know.
func (st *store) learn() {
	select {
	case st.learnt <- struct{}{}:
	default:
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
	st.mu.count.Evicted++
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

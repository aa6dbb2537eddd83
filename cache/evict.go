package cache

import "rankfs/cache/policy"

// evict gives up a slab. One in memory that an epoch may have again is kept in
// the form that the policy wants; if it has not said, on NVMe, if there is such
// a tier: its disk then sets the pace, as long as what is read does not fit in
// memory. One that is packed goes to NVMe where that pays.
func (st *store) evict(e *entry) {
	switch {
	case e.packed:
		st.writePacked(e.batch)
	case e.inMemory() && st.mayRecur(e):
		st.mu.Lock()
		if st.mu.eviction.needsCopy(&e.batch) {
			st.mu.count.Late++
		}
		st.mu.Unlock()
		st.keepCopy(e)
	}
	st.drop(e)
}

// keepCopy makes the copy of a slab in memory that is to be there when it has gone.
func (st *store) keepCopy(e *entry) {
	mem, done, err := st.descriptors.content(e)
	if err != nil {
		st.config.Log.Warn("slab not kept", "cause", err)
		return
	}
	defer done()
	switch measured, err := st.packed.offer(e.series.Dataset(), mem); {
	case err != nil:
		st.config.Log.Debug("codecs not tried", "cause", err)
	case measured:
		st.learn()
	}
	at, known := st.target(e.key)
	if at >= policy.Packed && st.pack(e, mem) { // as it is there is no room for it, whatever was chosen
		return
	}
	if !known || at >= policy.Disk {
		st.write(e, mem)
	}
}

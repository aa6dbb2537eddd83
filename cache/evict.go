package cache

import "rankfs/cache/policy"

// evict gives up a slab. One in memory that an epoch may have again is kept in
// the form that the policy wants; if it has not said, on NVMe, if there is such
// a tier: its disk then sets the pace, as long as what is read does not fit in
// memory. One that is packed goes to NVMe where that pays.
func (st *store) evict(e *entry) {
	var measure func() error
	switch {
	case e.packed:
		st.writePacked(e.batch)
	case e.inMemory() && st.mayRecur(e):
		st.mu.Lock()
		if st.mu.eviction.needsCopy(&e.batch) {
			st.mu.count.Late++
		}
		st.mu.Unlock()
		measure = st.keepCopy(e)
	}
	st.drop(e)
	st.tryCodecs(measure)
}

// keepCopy makes the copy of a slab in memory that is to be there when it has gone. If
// codecs are to be tried on some of its bytes, it returns how, as that takes longer than
// the slab is to stay.
func (st *store) keepCopy(e *entry) (measure func() error) {
	mem, done, err := st.descriptors.content(e)
	if err != nil {
		st.config.Log.Warn("slab not kept", "cause", err)
		return nil
	}
	defer done()
	if measure, err = st.packed.offer(e.series.Dataset, mem); err != nil {
		st.config.Log.Debug("codecs not tried", "cause", err)
	}
	at, known := st.target(e.key)
	if at >= policy.Packed && st.pack(e, mem) { // as it is there is no room for it, whatever was chosen
		return measure
	}
	if !known || at >= policy.Disk {
		st.write(e, mem)
	}
	return measure
}

// tryCodecs tries codecs on what keepCopy has copied for that, if it has.
func (st *store) tryCodecs(measure func() error) {
	if measure == nil {
		return
	}
	if err := measure(); err != nil {
		st.config.Log.Debug("codecs not tried", "cause", err)
		return
	}
	st.learn()
}

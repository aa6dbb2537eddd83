package cache

import (
	"errors"

	"rankfs/cache/pack"
	"rankfs/cache/policy"
	"rankfs/meta"
)

// pack keeps a slab that does not change in packed form too, if that pays. The
// first one costs another its place: there is no other room to begin with.
func (st *store) pack(e *entry, mem []byte) bool {
	st.mu.Lock()
	m, pays := st.mu.strategy.packing[e.key.Series]
	b := batch{key: e.key, series: e.series, form: form{packed: true, size: e.size}, history: e.history} // which an open may change meanwhile
	st.mu.Unlock()
	if !pays {
		return false
	}
	b.byHand = false // that is said of the other form
	put := func() (err error) {
		b.number, b.real, err = st.packed.put(st.ctx, e.key, mem, m)
		return err
	}
	err := put()
	if errors.Is(err, errNoRoom) && st.evictLessThan(&b) {
		err = put()
	}
	if err != nil {
		st.mu.Lock()
		e.dense = errors.Is(err, pack.ErrNoGain)
		st.mu.Unlock()
		st.config.Log.Debug("slab not packed", "cause", err)
		return false
	}
	st.mu.Lock()
	late := st.mu.slabs.isPacked(b.key) // by another, of another entry that has come and gone
	if !late {
		st.mu.eviction.addIdle(b)
	}
	st.mu.Unlock()
	if late {
		st.packed.drop(b.number)
	}
	return true
}

// evictLessThan evicts what is worth less than b, if anything is.
func (st *store) evictLessThan(b *batch) bool {
	st.mu.Lock()
	least := st.mu.eviction.lessThan(b)
	st.mu.Unlock()
	if least == nil {
		return false
	}
	st.evictToDisk(least)
	return true
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

// unpack fills a slab from its packed form, if there is one that is whole.
func (st *store) unpack(e *entry, f *ramFile) bool {
	st.mu.Lock()
	var b batch
	id := st.mu.slabs.idle.find(e.key, true)
	if id != 0 {
		b = st.mu.slabs.idle.at(id)
	}
	st.mu.Unlock()
	if id == 0 || b.size != e.size {
		return false
	}
	err := st.packed.store.Get(b.number, nameOf(e.key), f.mem)
	if err == nil {
		return true
	}
	if !errors.Is(err, meta.ErrNotExist) {
		st.config.Log.Warn("packed slab not served", "cause", err)
	}
	st.mu.Lock()
	id = st.mu.slabs.idle.find(e.key, true)
	mine := id != 0 && st.mu.slabs.idle.at(id).number == b.number // it was not taken meanwhile
	if mine {
		st.mu.eviction.remove(id)
	}
	st.mu.Unlock()
	if mine {
		st.packed.drop(b.number)
	}
	return false
}

package cache

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/policy"
)

// A mover brings batches to where the plan wants them: back to memory what lies on a
// disk or packed, before it is opened, and from a disk to packed; packed or to a disk
// what is in memory. It is one goroutine, which may wait for a disk that no worker
// should wait for. It does not hold the cache's lock while bytes are moved; what it is
// to do next is guarded by that.
type mover struct {
	*tiers
	mu          *guarded
	descriptors *descriptors
	store       *store
	ctx         context.Context
	token       chan struct{} // one: there may be something to do
	moving      sync.Mutex    // held while a batch is on its way; taken before the cache's
}

// Moves are what the last plan wants elsewhere, and what has no copy though that was
// tried since.
type moves struct {
	up    []rise   // the one that is needed first first
	down  []uint32 // on the shelf
	tried map[Key]struct{}
}

// A rise is a batch that should be higher than it is when a reader comes to it.
type rise struct {
	plan       Plan
	rank, step uint64
	at         float64 // when the reader comes, on the planner's clock
	item       int32   // of the plan's problem
}

// mostRises bounds what is brought up between two plans, a second at
// least: more than a disk gives, unless batches are small.
const mostRises = 1 << 14

// rising is what a plan wants higher than it is.
func (o *outlook) rising(levels []policy.Level) []rise {
	up := slices.DeleteFunc(o.below, func(r rise) bool { return levels[r.item] <= o.problem.Items[r.item].Now })
	slices.SortStableFunc(up, func(a, b rise) int { return cmp.Compare(a.at, b.at) })
	return slices.Clone(up[:min(len(up), mostRises)])
}

func (m *mover) run() {
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.token:
		}
		for m.move() {
		}
	}
}

// move moves one batch, and reports whether there was one.
func (m *mover) move() bool {
	m.moving.Lock()
	defer m.moving.Unlock()
	return m.raise() || m.lower() || m.copyAhead()
}

// wake says that there may be something to do.
func (m *mover) wake() {
	select {
	case m.token <- struct{}{}:
	default:
	}
}

// raise brings the next batch up, and reports whether there was one to
// try. Where one finds no room, the others, which are needed later, find none.
func (m *mover) raise() bool {
	m.mu.Lock()
	if len(m.mu.moves.up) == 0 || m.mu.strained || m.mu.closed {
		m.mu.Unlock()
		return false
	}
	r := m.mu.moves.up[0]
	m.mu.moves.up = m.mu.moves.up[1:]
	m.mu.Unlock()
	e := &entry{kept: kept{key: r.plan.Key(r.rank, r.step), plan: r.plan, history: history{opened: true}}, making: making{rank: r.rank, step: r.step}}
	if !m.rises(e) {
		return true
	}
	switch err := m.bring(e); {
	case errors.Is(err, errNoRoom):
		m.mu.Lock()
		m.mu.moves.up = nil
		m.mu.Unlock()
	case err != nil:
		m.config.Log.Debug("batch not brought to where it should be", "cause", err)
	}
	return true
}

// rises reports whether a batch is still to be brought up, and notes what is known of
// it.
func (m *mover) rises(e *entry) bool {
	e.size = e.plan.Size(e.rank, e.step)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := policy.Disk
	for _, packed := range []bool{true, false} {
		if id := m.mu.slabs.idle.find(e.key, packed); id != 0 {
			k := m.mu.slabs.idle.at(id)
			now, e.history = max(now, k.level()), k.history
		}
	}
	at, known := m.mu.strategy.targets.of(e.key)
	return known && at > now && m.mu.slabs.entries[e.key] == nil && !m.mu.eviction.passes(&e.kept)
}

// bring copies a batch from where it lies into memory. It is packed there if it
// should be, or laid there, unless it has come otherwise meanwhile.
func (m *mover) bring(e *entry) error {
	f, err := m.room(e)
	if err != nil {
		return err
	}
	e.ram = f
	if !m.store.unpack(e, f) {
		ok := false
		if m.nvme != nil {
			ok, err = m.nvme.Copy(disks.Key(e.key), f.mem)
		}
		if !ok {
			m.giveBack(e)
			return err
		}
	}
	if at, _ := m.store.target(e.key); at == policy.Packed && m.store.pack(e, f.mem) {
		m.giveBack(e)
		m.store.shelve(e.key)
		m.converted()
		return nil
	}
	if err := m.register(e); err != nil {
		return err
	}
	if old, laid := m.swap(e); !laid {
		m.descriptors.discard(e)
	} else if old != nil {
		m.descriptors.discard(old)
	}
	return nil
}

// swap lays a batch in memory in the place of its slab on a disk, which the caller is
// to give up if nobody else has it by now.
func (m *mover) swap(e *entry) (old *entry, laid bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.slabs.entries[e.key] != nil {
		return nil, false
	}
	if id := m.mu.slabs.idle.find(e.key, false); id != 0 {
		there := m.mu.slabs.idle.at(id)
		if there.inMemory() {
			return nil, false
		}
		e.history = there.history
		old = &entry{kept: m.mu.slabs.idle.take(id)}
	}
	m.mu.eviction.lay(e.kept)
	m.mu.count.converted++
	return old, true
}

// room takes memory for a batch: what is free, or what the plan wants out of it and
// is worth less.
func (m *mover) room(e *entry) (*ramFile, error) {
	if m.huge(e.size) {
		return nil, errNoRoom
	}
	m.ram.sweep()
	for {
		m.descriptors.parkSome()
		f, err := m.ram.take(e.size)
		if !errors.Is(err, errNoRoom) {
			return f, err
		}
		if lacksFiles(err) {
			if m.descriptors.park() {
				continue
			}
			return nil, err
		}
		m.mu.Lock()
		victim := m.mu.eviction.unwanted(&e.kept)
		m.mu.Unlock()
		if victim == nil {
			return nil, err
		}
		m.store.evict(victim)
	}
}

// unwanted takes what goes first out of the cache if no plan wants it in memory, no
// reader is just coming to it, and it is worth less than k.
func (ev *eviction) unwanted(k *kept) *entry {
	if e := ev.useless(ev.readers.count); e != nil {
		return e
	}
	id := ev.lesser(k)
	if id == 0 {
		return nil
	}
	least := ev.slabs.idle.at(id)
	if at, known := ev.strategy.targets.of(least.key); known && at >= least.level() {
		return nil
	}
	return ev.remove(id)
}

// lower has the next batch in memory packed or written, or one of its forms given up,
// if a worker has nothing to do; it reports whether there was one.
func (m *mover) lower() bool {
	m.mu.Lock()
	e, ok := m.displace()
	m.mu.Unlock()
	if !ok {
		return false
	}
	switch {
	case !e.packed:
		m.copyDown(e)
	case e.state == ready: // and off the shelf
		m.packed.drop(e.number)
	case !m.store.sink(e.kept):
		return true
	}
	m.converted()
	return true
}

func (m *mover) converted() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.count.converted++
}

// displace finds something on the shelf that is not where it should be. What has a
// file is held then, what is in a slot lifted, a packed copy that nobody needs taken
// away; of one that is to be written to a disk, what is known is returned. mu is held.
func (m *mover) displace() (e *entry, ok bool) {
	for n := len(m.mu.moves.down); n > 0 && m.mu.queue.resting > 0 && !m.mu.strained && !m.mu.closed; n = len(m.mu.moves.down) {
		id := m.mu.moves.down[n-1]
		m.mu.moves.down = m.mu.moves.down[:n-1]
		if !m.mu.slabs.idle.has(id) || m.mu.slabs.idle.isSpent(id) {
			continue
		}
		k := m.mu.slabs.idle.at(id) // which may be another one by now
		_, there := m.mu.slabs.ready(k.key)
		switch {
		case !m.mu.eviction.displaced(&k):
		case k.packed && there:
			return m.mu.eviction.remove(id), true
		case k.packed:
			return &entry{kept: k}, true
		case k.pooled:
			return m.mu.lift(id), true
		default:
			e := m.mu.slabs.pick(id)
			e.holders++ // so that nobody evicts it
			return e, true
		}
	}
	return nil, false
}

// displaced reports whether a slab on the shelf has a copy to be made or given up.
// mu is held.
func (ev *eviction) displaced(k *kept) bool {
	at, ok := ev.strategy.targets.of(k.key)
	if !ok || ev.passes(k) {
		return false
	}
	unwritten := at == policy.Disk && ev.nvme != nil && !ev.nvme.Has(disks.Key(k.key))
	switch {
	case k.packed:
		_, there := ev.slabs.ready(k.key)
		return there && at == policy.RAM || !there && unwritten
	case !k.inMemory():
		return false
	}
	return unwritten || at == policy.Packed && !ev.slabs.isPacked(k.key) && !k.dense
}

// leaving is how many batches that go first are copied before their room is needed.
const leaving = 32

// copyAhead packs or writes the next batch that is to leave memory soon, so that who
// needs its room has but to drop it. It reports whether there was one. As long as
// memory has room for as many, nothing leaves.
func (m *mover) copyAhead() bool {
	free := m.ram.free()
	m.mu.Lock()
	e := m.leaver(free)
	m.mu.Unlock()
	if e == nil {
		return false
	}
	lifted := e.pooled
	m.store.keep(e)
	if lifted {
		m.mu.parked(e)
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.unhold(e)
	return true
}

// leaver is the next of what goes first that has to be copied before, held or lifted,
// if so many bytes are free; or nil. What a reader is just coming to does not leave yet.
// Each is tried once for each plan. mu is held.
func (m *mover) leaver(free int64) *entry {
	if m.mu.strained || m.mu.closed {
		return nil
	}
	looked := 0
	for id := range m.mu.slabs.idle.lanes.all() {
		k := m.mu.slabs.idle.at(id)
		if looked++; looked > leaving || free > leaving*pages(k.size) {
			return nil
		}
		if _, tried := m.mu.moves.tried[k.key]; tried || !m.mu.eviction.laborious(&k) {
			continue
		}
		if m.mu.moves.tried == nil {
			m.mu.moves.tried = make(map[Key]struct{})
		}
		if len(m.mu.moves.tried) >= mostRises {
			return nil
		}
		m.mu.moves.tried[k.key] = struct{}{}
		if k.pooled {
			return m.mu.lift(id)
		}
		e := m.mu.slabs.pick(id)
		e.holders++ // so that nobody evicts it
		return e
	}
	return nil
}

// fills wakes the mover if memory has hardly room for more batches of a size.
func (m *mover) fills(size int64) {
	if m.ram.free() <= leaving*pages(size) {
		m.wake()
	}
}

// free is the memory that nothing has.
func (r *ram) free() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	free := r.budget.Load() - r.mu.used
	for _, f := range r.mu.spare {
		free += f.real
	}
	return free
}

// laborious reports whether k would be packed or written when it leaves memory. mu is
// held.
func (ev *eviction) laborious(k *kept) bool {
	if !k.inMemory() || !k.opened || ev.passes(k) || ev.slabs.isPacked(k.key) {
		return false
	}
	at, known := ev.strategy.targets.of(k.key)
	if _, pays := ev.strategy.packing[k.key.Plan]; at >= policy.Packed && pays && !k.dense {
		return true
	}
	return (!known || at >= policy.Disk) && ev.nvme != nil && !ev.nvme.Has(disks.Key(k.key))
}

// copyDown makes the copy that the plan wants of a slab in memory.
func (m *mover) copyDown(e *entry) {
	lifted := e.pooled
	if mem, done, err := m.descriptors.content(e); err == nil {
		if at, _ := m.store.target(e.key); at == policy.Packed {
			m.store.pack(e, mem)
		} else {
			m.store.spill(e, mem)
		}
		done()
	}
	if lifted {
		m.mu.parked(e)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.unhold(e)
}

// sink keeps a copy of a packed slab on NVMe, if that costs less than to have it from
// its source again, and reports whether it did. It takes no memory: the slab is
// unpacked into its file.
func (st *store) sink(k kept) bool {
	if st.nvme == nil || !st.sinks(&k) || st.nvme.Has(disks.Key(k.key)) {
		return false
	}
	start := time.Now()
	err := st.nvme.Fill(disks.Key(k.key), k.size, func(mem []byte) error {
		return st.packed.store.Get(k.number, nameOf(k.key), mem)
	}, st.yields(&entry{kept: k}))
	if err != nil {
		st.config.Log.Debug("packed slab not kept on nvme", "cause", err)
		return false
	}
	st.written(k.size, time.Since(start))
	return true
}

// sinks reports whether a packed slab is worth a copy on a disk: somebody may want it
// again, it is in no other form, and what an open waits less for the disk than for the
// source is more than it takes to unpack and to write it, as measured.
func (st *store) sinks(k *kept) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if at, known := st.mu.strategy.targets.of(k.key); st.mu.eviction.passes(k) || st.mu.slabs.known(k.key) || known && at == policy.Source {
		return false
	}
	i := st.mu.eviction.item(k)
	return i.Wait[policy.Source]-i.Wait[policy.Disk] > i.Move[policy.Disk]+i.Wait[policy.Packed]
}

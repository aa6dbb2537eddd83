package cache

import (
	"cmp"
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
	cache  *Cache
	token  chan struct{} // one: there may be something to do
	moving *sync.Mutex   // held while a batch is on its way; taken before the cache's
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

func (m mover) run() {
	for {
		select {
		case <-m.cache.ctx.Done():
			return
		case <-m.token:
		}
		for m.move() {
		}
	}
}

// move moves one batch, and reports whether there was one.
func (m mover) move() bool {
	m.moving.Lock()
	defer m.moving.Unlock()
	return m.raise() || m.lower() || m.copyAhead()
}

// wake says that there may be something to do.
func (m mover) wake() {
	select {
	case m.token <- struct{}{}:
	default:
	}
}

// raise brings the next batch up, and reports whether there was one to
// try. Where one finds no room, the others, which are needed later, find none.
func (m mover) raise() bool {
	c := m.cache
	c.mu.Lock()
	if len(c.mu.moves.up) == 0 || c.mu.strained || c.mu.closed {
		c.mu.Unlock()
		return false
	}
	r := c.mu.moves.up[0]
	c.mu.moves.up = c.mu.moves.up[1:]
	c.mu.Unlock()
	e := &entry{kept: kept{key: r.plan.Key(r.rank, r.step), plan: r.plan, history: history{opened: true}}, making: making{rank: r.rank, step: r.step}}
	if !c.rises(e) {
		return true
	}
	switch err := m.bring(e); {
	case errors.Is(err, errNoRoom):
		c.mu.Lock()
		c.mu.moves.up = nil
		c.mu.Unlock()
	case err != nil:
		c.config.Log.Debug("batch not brought to where it should be", "cause", err)
	}
	return true
}

// rises reports whether a batch is still to be brought up, and notes what is known of
// it.
func (c *Cache) rises(e *entry) bool {
	e.size = e.plan.Size(e.rank, e.step)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := policy.Disk
	for _, packed := range []bool{true, false} {
		if id := c.mu.shelf.find(e.key, packed); id != 0 {
			k := c.mu.shelf.at(id)
			now, e.history = max(now, k.level()), k.history
		}
	}
	at, known := c.mu.targets.of(e.key)
	return known && at > now && c.mu.entries[e.key] == nil && !c.passes(&e.kept)
}

// bring copies a batch from where it lies into memory. It is packed there if it
// should be, or laid there, unless it has come otherwise meanwhile.
func (m mover) bring(e *entry) error {
	c := m.cache
	f, err := m.room(e)
	if err != nil {
		return err
	}
	e.ram = f
	if !c.unpack(e, f) {
		ok := false
		if c.nvme != nil {
			ok, err = c.nvme.Copy(disks.Key(e.key), f.mem)
		}
		if !ok {
			c.giveBack(e)
			return err
		}
	}
	if at, _ := c.target(e.key); at == policy.Packed && c.pack(e, f.mem) {
		c.giveBack(e)
		c.shelve(e.key)
		c.converted()
		return nil
	}
	if err := c.register(e); err != nil {
		return err
	}
	if old, laid := c.swap(e); !laid {
		c.discard(e)
	} else if old != nil {
		c.discard(old)
	}
	return nil
}

// swap lays a batch in memory in the place of its slab on a disk, which the caller is
// to give up if nobody else has it by now.
func (c *Cache) swap(e *entry) (old *entry, laid bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.entries[e.key] != nil {
		return nil, false
	}
	if id := c.mu.shelf.find(e.key, false); id != 0 {
		there := c.mu.shelf.at(id)
		if there.inMemory() {
			return nil, false
		}
		e.history = there.history
		old = &entry{kept: c.mu.shelf.take(id)}
	}
	c.lay(e.kept)
	c.mu.count.converted++
	return old, true
}

// room takes memory for a batch: what is free, or what the plan wants out of it and
// is worth less.
func (m mover) room(e *entry) (*ramFile, error) {
	c := m.cache
	if c.huge(e.size) {
		return nil, errNoRoom
	}
	c.ram.sweep()
	for {
		c.parkSome()
		f, err := c.ram.take(e.size)
		if !errors.Is(err, errNoRoom) {
			return f, err
		}
		if lacksFiles(err) {
			if c.park() {
				continue
			}
			return nil, err
		}
		victim := c.unwanted(&e.kept)
		if victim == nil {
			return nil, err
		}
		c.evict(victim)
	}
}

// unwanted takes what goes first out of the cache if no plan wants it in memory, no
// reader is just coming to it, and it is worth less than k.
func (c *Cache) unwanted(k *kept) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.useless(c.mu.readers); e != nil {
		return e
	}
	id := c.lesser(k)
	if id == 0 {
		return nil
	}
	least := c.mu.shelf.at(id)
	if at, known := c.mu.targets.of(least.key); known && at >= least.level() {
		return nil
	}
	return c.remove(id)
}

// lower has the next batch in memory packed or written, or one of its forms given up,
// if a worker has nothing to do; it reports whether there was one.
func (m mover) lower() bool {
	c := m.cache
	c.mu.Lock()
	e, ok := c.displace()
	c.mu.Unlock()
	if !ok {
		return false
	}
	switch {
	case !e.packed:
		m.copyDown(e)
	case e.state == ready: // and off the shelf
		c.packed.drop(e.number)
	case !c.sink(e.kept):
		return true
	}
	c.converted()
	return true
}

func (c *Cache) converted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.count.converted++
}

// displace finds something on the shelf that is not where it should be. What has a
// file is held then, what is in a slot lifted, a packed copy that nobody needs taken
// away; of one that is to be written to a disk, what is known is returned. mu is held.
func (c *Cache) displace() (e *entry, ok bool) {
	for n := len(c.mu.moves.down); n > 0 && c.mu.resting > 0 && !c.mu.strained && !c.mu.closed; n = len(c.mu.moves.down) {
		id := c.mu.moves.down[n-1]
		c.mu.moves.down = c.mu.moves.down[:n-1]
		if !c.mu.shelf.has(id) || c.mu.shelf.isSpent(id) {
			continue
		}
		k := c.mu.shelf.at(id) // which may be another one by now
		_, there := c.ready(k.key)
		switch {
		case !c.displaced(&k):
		case k.packed && there:
			return c.remove(id), true
		case k.packed:
			return &entry{kept: k}, true
		case k.pooled:
			return c.lift(id), true
		default:
			e := c.pick(id)
			e.holders++ // so that nobody evicts it
			return e, true
		}
	}
	return nil, false
}

// displaced reports whether a slab on the shelf has a copy to be made or given up.
// mu is held.
func (c *Cache) displaced(k *kept) bool {
	at, ok := c.mu.targets.of(k.key)
	if !ok || c.passes(k) {
		return false
	}
	unwritten := at == policy.Disk && c.nvme != nil && !c.nvme.Has(disks.Key(k.key))
	switch {
	case k.packed:
		_, there := c.ready(k.key)
		return there && at == policy.RAM || !there && unwritten
	case !k.inMemory():
		return false
	}
	return unwritten || at == policy.Packed && !c.isPacked(k.key) && !k.dense
}

// leaving is how many batches that go first are copied before their room is needed.
const leaving = 32

// copyAhead packs or writes the next batch that is to leave memory soon, so that who
// needs its room has but to drop it. It reports whether there was one. As long as
// memory has room for as many, nothing leaves.
func (m mover) copyAhead() bool {
	c := m.cache
	free := c.ram.free()
	c.mu.Lock()
	e := c.leaver(free)
	c.mu.Unlock()
	if e == nil {
		return false
	}
	lifted := e.pooled
	c.keep(e)
	if lifted {
		c.parked(e)
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.holders--; e.holders == 0 && e.waiters == 0 {
		c.rest(e)
	}
	return true
}

// leaver is the next of what goes first that has to be copied before, held or lifted,
// if so many bytes are free; or nil. What a reader is just coming to does not leave yet.
// Each is tried once for each plan. mu is held.
func (c *Cache) leaver(free int64) *entry {
	if c.mu.strained || c.mu.closed {
		return nil
	}
	looked := 0
	for id := range c.mu.shelf.lanes.all() {
		k := c.mu.shelf.at(id)
		if looked++; looked > leaving || free > leaving*pages(k.size) {
			return nil
		}
		if _, tried := c.mu.moves.tried[k.key]; tried || !c.laborious(&k) {
			continue
		}
		if c.mu.moves.tried == nil {
			c.mu.moves.tried = make(map[Key]struct{})
		}
		if len(c.mu.moves.tried) >= mostRises {
			return nil
		}
		c.mu.moves.tried[k.key] = struct{}{}
		if k.pooled {
			return c.lift(id)
		}
		e := c.pick(id)
		e.holders++ // so that nobody evicts it
		return e
	}
	return nil
}

// fills wakes the mover if memory has hardly room for more batches of a size.
func (m mover) fills(size int64) {
	if m.cache.ram.free() <= leaving*pages(size) {
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
func (c *Cache) laborious(k *kept) bool {
	if !k.inMemory() || !k.opened || c.passes(k) || c.isPacked(k.key) {
		return false
	}
	at, known := c.mu.targets.of(k.key)
	if _, pays := c.mu.packing[k.key.Plan]; at >= policy.Packed && pays && !k.dense {
		return true
	}
	return (!known || at >= policy.Disk) && c.nvme != nil && !c.nvme.Has(disks.Key(k.key))
}

// copyDown makes the copy that the plan wants of a slab in memory.
func (m mover) copyDown(e *entry) {
	c, lifted := m.cache, e.pooled
	if mem, done, err := c.content(e); err == nil {
		if at, _ := c.target(e.key); at == policy.Packed {
			c.pack(e, mem)
		} else {
			c.spill(e, mem)
		}
		done()
	}
	if lifted {
		c.parked(e)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.holders--; e.holders == 0 && e.waiters == 0 {
		c.rest(e)
	}
}

// sink keeps a copy of a packed slab on NVMe, if that costs less than to have it from
// its source again, and reports whether it did. It takes no memory: the slab is
// unpacked into its file.
func (c *Cache) sink(k kept) bool {
	if c.nvme == nil || !c.sinks(&k) || c.nvme.Has(disks.Key(k.key)) {
		return false
	}
	start := time.Now()
	err := c.nvme.Fill(disks.Key(k.key), k.size, func(mem []byte) error {
		return c.packed.store.Get(k.number, nameOf(k.key), mem)
	}, c.yields(&entry{kept: k}))
	if err != nil {
		c.config.Log.Debug("packed slab not kept on nvme", "cause", err)
		return false
	}
	c.written(k.size, time.Since(start))
	return true
}

// sinks reports whether a packed slab is worth a copy on a disk: somebody may want it
// again, it is in no other form, and what an open waits less for the disk than for the
// source is more than it takes to unpack and to write it, as measured.
func (c *Cache) sinks(k *kept) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, known := c.mu.targets.of(k.key); c.passes(k) || c.known(k.key) || known && at == policy.Source {
		return false
	}
	i := c.item(k)
	return i.Wait[policy.Source]-i.Wait[policy.Disk] > i.Move[policy.Disk]+i.Wait[policy.Packed]
}

package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/policy"
	"rankfs/cache/stall"
)

// work serves opens that wait, then what the readers will ask for next.
func (c *Cache) work() {
	for {
		e, what := c.next()
		if what == nothing {
			return
		}
		c.make(e, what == demanded)
	}
}

// An errand is why a worker is given an entry.
type errand uint8

const (
	nothing  errand = iota // the cache closes, or has other workers
	demanded               // an open waits for it
	wished                 // a reader will want it
)

// make fills e and tells those who wait.
func (c *Cache) make(e *entry, demanded bool) {
	start := time.Now()
	err := c.fill(e, demanded)
	c.finish(e, err, time.Since(start), demanded)
}

// next waits for something to do.
func (c *Cache) next() (*entry, errand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for waited := true; ; waited = false {
		if c.mu.closed {
			return nil, nothing
		}
		if c.mu.workers > c.mu.fills.AtOnce() {
			c.mu.workers--
			c.wake.Signal() // what it was woken for is another's
			return nil, nothing
		}
		if e, what := c.choose(); e != nil {
			if e.waited = waited; waited {
				c.reinforce()
			}
			return e, what
		}
		c.mu.resting++
		if len(c.mu.moves.down) > 0 {
			c.mover.wake()
		}
		c.wake.Wait()
		c.mu.resting--
	}
}

// reinforce has one more worker, if all are busy and more should be. mu is held.
func (c *Cache) reinforce() {
	if c.mu.resting == 0 && c.mu.workers < c.mu.fills.AtOnce() {
		c.mu.workers++
		c.tasks.Go(c.work)
	}
}

// fill gives e a slab: the one that is on NVMe already, or a new one in RAM; if
// RAM has no room for it, one on NVMe, as far as its recourse allows.
func (c *Cache) fill(e *entry, demanded bool) error {
	e.clock.Enter(stall.Plan)
	if !e.pooled {
		e.size = e.plan.Size(e.rank, e.step)
	}
	defer c.leaveLine(e)
	for {
		err := c.bring(e, demanded)
		if !errors.Is(err, errNoRoom) {
			return err
		}
		demanded = demanded || c.waitedFor(e)
		next := c.recourse(e, demanded)
		if next != giveUp && c.nvme != nil && !e.pooled {
			nerr := c.fillNVMe(e)
			if !errors.Is(nerr, errNoRoom) {
				return nerr
			}
			err = errors.Join(err, nerr)
		}
		if next != toDiskOrWait {
			return err
		}
		if err := c.awaitRoom(e, err); err != nil {
			return err
		}
	}
}

// bring gives e the slab that is on NVMe already, or a new one in RAM.
func (c *Cache) bring(e *entry, demanded bool) error {
	if c.nvme != nil && !e.pooled && !c.unpacks(e.key) {
		if err := c.restore(e, demanded); err != nil || e.file != nil {
			return err
		}
	}
	return c.fillRAM(e, demanded)
}

// restore opens the slab on NVMe, if there is one, for which others make way that
// have all the descriptors.
func (c *Cache) restore(e *entry, demanded bool) error {
	e.clock.Enter(stall.Disk)
	for {
		f, err := c.nvme.Open(disks.Key(e.key))
		switch {
		case f != nil:
			e.file, e.from = f, policy.Disk
			return c.register(e)
		case !errors.Is(err, errNoRoom) || !c.makeWay(e, demanded, err):
			return err
		}
		c.ram.thin()
	}
}

// A recourse is what a fill does that memory has no room for now.
type recourse uint8

const (
	giveUp recourse = iota
	toDisk
	toDiskOrWait // for room
)

// recourse says which fills may go to the disk, and which may wait for room.
func (c *Cache) recourse(e *entry, demanded bool) recourse {
	switch {
	case c.huge(e.size): // there is no other place for it
		return toDisk
	case e.plan.Shared(): // whoever asks for a part holds memory that others wait for
		return toDisk
	case demanded:
		return toDiskOrWait
	case e.byHand:
		return toDisk
	}
	return giveUp // its reader is not there yet
}

// again reports whether an open that came while a fill failed for lack of room may
// find some: it takes anything's place, and waits where who left did no longer.
func (c *Cache) again(e *entry, demanded bool) bool {
	return !e.plan.Shared() && (!demanded || c.recourse(e, true) == toDiskOrWait)
}

// huge reports whether memory could not hold so much if it were empty.
func (c *Cache) huge(size int64) bool { return pages(size) > c.config.RAMBytes }

func (c *Cache) fillRAM(e *entry, demanded bool) error {
	e.clock.Enter(stall.Admission)
	f, err := c.takeRAM(e, demanded)
	if err != nil {
		return err
	}
	e.ram = f
	c.relieved(e)
	if e.pooled {
		return c.fromPool(e)
	}
	e.clock.Enter(stall.Plan)
	ctx := stall.With(c.ctx, e.clock)
	unpacking := stall.Enter(ctx, stall.Decode)
	if c.unpack(e, f) {
		unpacking.Leave(e.size)
		e.from = policy.Packed
		return c.register(e)
	}
	unpacking.Leave(0)
	if err := e.plan.Fill(ctx, e.rank, e.step, f.mem); err != nil {
		c.giveBack(e)
		return err
	}
	return c.register(e)
}

// unpacks reports whether a batch is there in packed form.
func (c *Cache) unpacks(k Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isPacked(k)
}

// register makes the slab known to the kernel, or gives it back.
func (c *Cache) register(e *entry) (err error) {
	if c.config.Backing == nil {
		return nil
	}
	if e.backing, err = c.config.Backing.Register(e.fd()); err != nil {
		c.giveBack(e)
		return fmt.Errorf("register slab with the kernel: %w", err)
	}
	return nil
}

func (c *Cache) giveBack(e *entry) {
	switch {
	case e.ram != nil:
		c.ram.retire(e.ram)
	case e.pooled:
		c.ram.unstore(e.number, e.size)
		e.pooled = false
	case e.file != nil:
		e.file.Release()
	}
	e.ram, e.file = nil, nil
}

func (c *Cache) waitedFor(e *entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.waiters > 0
}

// evict gives up a slab. One in memory that an epoch may have again is kept in
// the form that the planner wants; if it has not said, on NVMe, if there is such
// a tier: its disk then sets the pace, as long as what is read does not fit in
// memory. One that is packed goes to NVMe where that pays.
func (c *Cache) evict(e *entry) {
	switch {
	case e.packed:
		c.sink(e.kept)
	case e.inMemory() && c.recurs(e):
		c.mu.Lock()
		if c.laborious(&e.kept) {
			c.mu.count.late++
		}
		c.mu.Unlock()
		c.keep(e)
	}
	c.drop(e)
}

// evictToDisk is evict for who makes room to pack something.
func (c *Cache) evictToDisk(e *entry) {
	switch at, known := c.target(e.key); {
	case e.packed:
		c.sink(e.kept)
	case e.inMemory() && c.nvme != nil && (!known || at >= policy.Disk) && c.recurs(e):
		if mem, done, err := c.content(e); err == nil {
			c.spill(e, mem)
			done()
		}
	}
	c.drop(e)
}

// recurs reports whether somebody may want e again, and it is not packed.
func (c *Cache) recurs(e *entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.passes(&e.kept) && !c.isPacked(e.key)
}

func (c *Cache) keep(e *entry) {
	mem, done, err := c.content(e)
	if err != nil {
		c.config.Log.Warn("slab not kept", "cause", err)
		return
	}
	defer done()
	if err := c.packed.offer(e.plan.Dataset(), mem); err != nil {
		c.config.Log.Debug("codecs not tried", "cause", err)
	}
	at, known := c.target(e.key)
	if at >= policy.Packed && c.pack(e, mem) { // as it is there is no room for it, whatever was planned
		return
	}
	if !known || at >= policy.Disk {
		c.spill(e, mem)
	}
}

// spill keeps a copy of a slab on NVMe.
func (c *Cache) spill(e *entry, mem []byte) {
	if c.nvme == nil {
		return
	}
	if c.nvme.Has(disks.Key(e.key)) {
		return
	}
	start := time.Now()
	if err := c.nvme.Put(disks.Key(e.key), mem, c.yields(e)); err != nil {
		c.config.Log.Debug("slab not kept on nvme", "cause", err)
		return
	}
	c.written(e.size, time.Since(start))
}

// written notes how long a disk took to write a slab.
func (c *Cache) written(size int64, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.writes.add(float64(size), took)
}

// drop gives up what is in the cache no more.
func (c *Cache) drop(e *entry) {
	if e.packed {
		c.packed.drop(e.number)
	} else {
		c.discard(e)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.count.evicted++
}

// discard gives up a slab that is in the cache no more.
func (c *Cache) discard(e *entry) {
	if e.ram != nil { // which the kernel may keep for the backing id alone
		if err := c.attach(e.ram); err != nil {
			c.config.Log.Warn("slab given up unseen: a mapping of it is not counted any more", "cause", err)
		}
	}
	if c.config.Backing != nil && !e.pooled {
		c.config.Backing.Unregister(e.backing)
	}
	c.giveBack(e)
}

// fillNVMe makes the slab on disk: a batch may be larger than memory.
func (c *Cache) fillNVMe(e *entry) error {
	e.clock.Enter(stall.Disk)
	err := c.nvme.Fill(disks.Key(e.key), e.size, func(mem []byte) error {
		e.clock.Enter(stall.Plan)
		defer e.clock.Enter(stall.Disk)
		return e.plan.Fill(stall.With(c.ctx, e.clock), e.rank, e.step, mem)
	}, c.spare(e))
	if err != nil {
		return err
	}
	if e.file, err = c.nvme.Open(disks.Key(e.key)); e.file == nil {
		return fmt.Errorf("nvme slab is gone before it was opened: %w", errors.Join(err, errNoRoom))
	}
	return c.register(e)
}

// finish publishes an entry, or its failure, to those who wait.
func (c *Cache) finish(e *entry, err error, took time.Duration, demanded bool) {
	e.clock.Enter(stall.Admission) // from here on who waits, waits for a processor
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.count.fillTime += took
	e.turn.end += took
	if errors.Is(err, errNoRoom) && e.waiters > 0 && c.again(e, demanded) {
		c.mu.demand = append(c.mu.demand, e)
		c.wake.Signal()
		return
	}
	e.clock = nil
	if err != nil {
		e.state, e.err = failed, err
		delete(c.mu.entries, e.key)
		if e.pooled { // it is where it was
			c.lay(e.kept)
		}
		c.balk(e, err)
		if !errors.Is(err, errNoRoom) && !errors.Is(err, context.Canceled) {
			c.mu.count.fillErrors++
		}
	} else {
		e.state = ready
		switch e.from {
		case policy.RAM: // where it was
		case policy.Disk:
			c.mu.count.restored++
		case policy.Packed:
			c.mu.count.unpacked++
		default:
			c.mu.count.fills++
			c.mu.count.fillBytes += uint64(e.size)
			e.took = took
			c.mu.fills.Done(c.seconds(time.Now()), float64(e.size), e.waited)
		}
		if e.from != policy.RAM {
			c.mu.speeds[e.from].add(float64(e.size), took)
		}
		if e.waiters == 0 {
			c.rest(e)
		}
	}
	close(e.done)
	c.wake.Signal()
}

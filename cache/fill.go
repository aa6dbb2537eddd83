package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/policy"
	"rankfs/cache/stall"
)

// workers fill slabs.
type workers struct {
	*tiers
	mu        *guarded
	admission *admission
	store     *store
	mover     *mover
	ctx       context.Context
	tasks     *sync.WaitGroup // of the cache
}

// A store gives slabs up, and makes copies of them before.
type store struct {
	*tiers
	mu          *guarded
	descriptors *descriptors
	ctx         context.Context
}

// work serves opens that wait, then what the readers will ask for next.
func (w *workers) work() {
	for {
		e, what := w.next()
		if what == nothing {
			return
		}
		w.make(e, what == demanded)
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
func (w *workers) make(e *entry, demanded bool) {
	start := time.Now()
	err := w.fill(e, demanded)
	w.finish(e, err, time.Since(start), demanded)
	if e.wisher != nil && err != nil && !errors.Is(err, errNoRoom) && !errors.Is(err, context.Canceled) {
		w.config.Log.Debug("batch not made ready ahead", "rank", e.rank, "step", e.step, "cause", err)
	}
}

// next waits for something to do.
func (w *workers) next() (*entry, errand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for waited := true; ; waited = false {
		if w.mu.closed {
			return nil, nothing
		}
		if w.mu.queue.workers > w.mu.rates.fills.AtOnce() {
			w.mu.queue.workers--
			w.mu.queue.wake.Signal() // what it was woken for is another's
			return nil, nothing
		}
		if e, what := w.mu.queue.choose(!w.mu.strained); e != nil {
			if what == wished {
				w.mu.count.prefetched++
			}
			if e.waited = waited; waited {
				w.reinforce()
			}
			return e, what
		}
		w.mu.queue.resting++
		if len(w.mu.moves.down) > 0 {
			w.mover.wake()
		}
		w.mu.queue.wake.Wait()
		w.mu.queue.resting--
	}
}

// reinforce has one more worker, if all are busy and more should be. mu is held.
func (w *workers) reinforce() {
	if w.mu.queue.resting == 0 && w.mu.queue.workers < w.mu.rates.fills.AtOnce() {
		w.mu.queue.workers++
		w.tasks.Go(w.work)
	}
}

// fill gives e a slab: the one that is on NVMe already, or a new one in RAM; if
// RAM has no room for it, one on NVMe, as far as its recourse allows.
func (w *workers) fill(e *entry, demanded bool) error {
	e.clock.Enter(stall.Plan)
	if !e.pooled {
		e.size = e.plan.Size(e.rank, e.step)
	}
	defer w.admission.leave(e)
	for {
		err := w.bring(e, demanded)
		if !errors.Is(err, errNoRoom) {
			return err
		}
		demanded = demanded || w.waitedFor(e)
		next := w.recourse(e, demanded)
		if next != giveUp && w.nvme != nil && !e.pooled {
			nerr := w.fillNVMe(e)
			if !errors.Is(nerr, errNoRoom) {
				return nerr
			}
			err = errors.Join(err, nerr)
		}
		if next != toDiskOrWait {
			return err
		}
		if err := w.admission.awaitRoom(e, err); err != nil {
			return err
		}
	}
}

// bring gives e the slab that is on NVMe already, or a new one in RAM.
func (w *workers) bring(e *entry, demanded bool) error {
	if w.nvme != nil && !e.pooled && !w.unpacks(e.key) {
		if err := w.restore(e, demanded); err != nil || e.file != nil {
			return err
		}
	}
	return w.fillRAM(e, demanded)
}

// restore opens the slab on NVMe, if there is one, for which others make way that
// have all the descriptors.
func (w *workers) restore(e *entry, demanded bool) error {
	e.clock.Enter(stall.Disk)
	for {
		f, err := w.nvme.Open(disks.Key(e.key))
		switch {
		case f != nil:
			e.file, e.from = f, policy.Disk
			return w.register(e)
		case !errors.Is(err, errNoRoom) || !w.admission.makeWay(e, demanded, err):
			return err
		}
		w.ram.thin()
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
func (w *workers) recourse(e *entry, demanded bool) recourse {
	switch {
	case w.huge(e.size): // there is no other place for it
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
func (w *workers) again(e *entry, demanded bool) bool {
	return !e.plan.Shared() && (!demanded || w.recourse(e, true) == toDiskOrWait)
}

func (w *workers) fillRAM(e *entry, demanded bool) error {
	e.clock.Enter(stall.Admission)
	f, err := w.admission.takeRAM(e, demanded)
	if err != nil {
		return err
	}
	e.ram = f
	w.admission.relieved(e)
	if e.pooled {
		return w.fromPool(e)
	}
	e.clock.Enter(stall.Plan)
	ctx := stall.With(w.ctx, e.clock)
	unpacking := stall.Enter(ctx, stall.Decode)
	if w.store.unpack(e, f) {
		unpacking.Leave(e.size)
		e.from = policy.Packed
		return w.register(e)
	}
	unpacking.Leave(0)
	if err := e.plan.Fill(ctx, e.rank, e.step, f.mem); err != nil {
		w.giveBack(e)
		return err
	}
	return w.register(e)
}

// unpacks reports whether a batch is there in packed form.
func (w *workers) unpacks(k Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.slabs.isPacked(k)
}

func (w *workers) waitedFor(e *entry) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return e.waiters > 0
}

// evict gives up a slab. One in memory that an epoch may have again is kept in
// the form that the planner wants; if it has not said, on NVMe, if there is such
// a tier: its disk then sets the pace, as long as what is read does not fit in
// memory. One that is packed goes to NVMe where that pays.
func (st *store) evict(e *entry) {
	switch {
	case e.packed:
		st.sink(e.kept)
	case e.inMemory() && st.recurs(e):
		st.mu.Lock()
		if st.mu.eviction.laborious(&e.kept) {
			st.mu.count.late++
		}
		st.mu.Unlock()
		st.keep(e)
	}
	st.drop(e)
}

// evictToDisk is evict for who makes room to pack something.
func (st *store) evictToDisk(e *entry) {
	switch at, known := st.target(e.key); {
	case e.packed:
		st.sink(e.kept)
	case e.inMemory() && st.nvme != nil && (!known || at >= policy.Disk) && st.recurs(e):
		if mem, done, err := st.descriptors.content(e); err == nil {
			st.spill(e, mem)
			done()
		}
	}
	st.drop(e)
}

// recurs reports whether somebody may want e again, and it is not packed.
func (st *store) recurs(e *entry) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return !st.mu.eviction.passes(&e.kept) && !st.mu.slabs.isPacked(e.key)
}

func (st *store) keep(e *entry) {
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
		st.spill(e, mem)
	}
}

// spill keeps a copy of a slab on NVMe.
func (st *store) spill(e *entry, mem []byte) {
	if st.nvme == nil {
		return
	}
	if st.nvme.Has(disks.Key(e.key)) {
		return
	}
	start := time.Now()
	if err := st.nvme.Put(disks.Key(e.key), mem, st.yields(e)); err != nil {
		st.config.Log.Debug("slab not kept on nvme", "cause", err)
		return
	}
	st.written(e.size, time.Since(start))
}

// written notes how long a disk took to write a slab.
func (st *store) written(size int64, took time.Duration) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.mu.rates.writes.add(float64(size), took)
}

// drop gives up what is in the cache no more.
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

// discard gives up a slab that is in the cache no more.
func (d *descriptors) discard(e *entry) {
	if e.ram != nil { // which the kernel may keep for the backing id alone
		if err := d.attach(e.ram); err != nil {
			d.config.Log.Warn("slab given up unseen: a mapping of it is not counted any more", "cause", err)
		}
	}
	if d.config.Backing != nil && !e.pooled {
		d.config.Backing.Unregister(e.backing)
	}
	d.giveBack(e)
}

// fillNVMe makes the slab on disk: a batch may be larger than memory.
func (w *workers) fillNVMe(e *entry) error {
	e.clock.Enter(stall.Disk)
	err := w.nvme.Fill(disks.Key(e.key), e.size, func(mem []byte) error {
		e.clock.Enter(stall.Plan)
		defer e.clock.Enter(stall.Disk)
		return e.plan.Fill(stall.With(w.ctx, e.clock), e.rank, e.step, mem)
	}, w.spare(e))
	if err != nil {
		return err
	}
	if e.file, err = w.nvme.Open(disks.Key(e.key)); e.file == nil {
		return fmt.Errorf("nvme slab is gone before it was opened: %w", errors.Join(err, errNoRoom))
	}
	return w.register(e)
}

// finish publishes an entry, or its failure, to those who wait.
func (w *workers) finish(e *entry, err error, took time.Duration, demanded bool) {
	e.clock.Enter(stall.Admission) // from here on who waits, waits for a processor
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.count.fillTime += took
	e.turn.end += took
	if errors.Is(err, errNoRoom) && e.waiters > 0 && w.again(e, demanded) {
		w.mu.queue.demand = append(w.mu.queue.demand, e)
		w.mu.queue.wake.Signal()
		return
	}
	e.clock = nil
	if err != nil {
		e.state, e.err = failed, err
		delete(w.mu.slabs.entries, e.key)
		if e.pooled { // it is where it was
			w.mu.eviction.lay(e.kept)
		}
		w.mu.readers.balk(e)
		if !errors.Is(err, errNoRoom) && !errors.Is(err, context.Canceled) {
			w.mu.count.fillErrors++
		}
	} else {
		e.state = ready
		switch e.from {
		case policy.RAM: // where it was
		case policy.Disk:
			w.mu.count.restored++
		case policy.Packed:
			w.mu.count.unpacked++
		default:
			w.mu.count.fills++
			w.mu.count.fillBytes += uint64(e.size)
			e.took = took
			w.mu.rates.fills.Done(w.mu.time.seconds(time.Now()), float64(e.size), e.waited)
		}
		if e.from != policy.RAM {
			w.mu.rates.from[e.from].add(float64(e.size), took)
		}
		if e.waiters == 0 {
			w.mu.rest(e)
		}
	}
	close(e.done)
	w.mu.queue.wake.Signal()
}

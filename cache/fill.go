package cache

import (
	"errors"
	"fmt"

	"rankfs/cache/disks"
	"rankfs/cache/policy"
	"rankfs/cache/stall"
)

// fill gives e a slab: the one that is on NVMe already, or a new one in RAM; if
// RAM has no room for it, one on NVMe, as far as its fallback allows.
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
		next := w.fallback(e, demanded)
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

// restore opens the slab on NVMe, if there is one. If there is no descriptor for it,
// another batch makes way.
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
		w.ram.closeSpare()
	}
}

// fillRAM makes the slab in memory: from a slot of the pool, from its packed form, or
// from the plan.
func (w *workers) fillRAM(e *entry, demanded bool) error {
	e.clock.Enter(stall.Admission)
	f, err := w.admission.takeRAM(e, demanded)
	if err != nil {
		return err
	}
	e.ram = f
	w.admission.gotRoom(e)
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

// fromPool fills a file from a slot, which is given back.
func (w *workers) fromPool(e *entry) error {
	err := w.ram.pool.get(e.number, e.ram.mem)
	if err == nil {
		err = w.register(e)
	} else {
		w.giveBack(e)
	}
	if err != nil {
		return err
	}
	w.ram.unstore(e.number, e.size)
	e.pooled, e.number, e.from = false, 0, policy.RAM
	return nil
}

// fillNVMe makes the slab on disk: a batch may be larger than memory.
func (w *workers) fillNVMe(e *entry) error {
	e.clock.Enter(stall.Disk)
	err := w.nvme.Fill(disks.Key(e.key), e.size, func(mem []byte) error {
		e.clock.Enter(stall.Plan)
		defer e.clock.Enter(stall.Disk)
		return e.plan.Fill(stall.With(w.ctx, e.clock), e.rank, e.step, mem)
	}, w.replaceableByHand(e))
	if err != nil {
		return err
	}
	if e.file, err = w.nvme.Open(disks.Key(e.key)); e.file == nil {
		return fmt.Errorf("nvme slab is gone before it was opened: %w", errors.Join(err, errNoRoom))
	}
	return w.register(e)
}

// A fallback is what a fill does that memory has no room for now.
type fallback uint8

const (
	giveUp fallback = iota
	toDisk
	toDiskOrWait // for room
)

// fallback says which fills may go to the disk, and which may wait for room.
func (w *workers) fallback(e *entry, demanded bool) fallback {
	switch {
	case w.exceedsMemory(e.size): // there is no other place for it
		return toDisk
	case e.plan.Shared(): // the fill that wants the part holds memory that others wait for
		return toDisk
	case demanded:
		return toDiskOrWait
	case e.byHand:
		return toDisk
	}
	return giveUp // its reader is not there yet
}

// retries reports whether an open that came while a fill failed for lack of room may
// find some: it takes anything's place, and may wait where the fill did not.
func (w *workers) retries(e *entry, demanded bool) bool {
	return !e.plan.Shared() && (!demanded || w.fallback(e, true) == toDiskOrWait)
}

// replaceableByHand says which slabs on disk may make way for e, if it is made ready
// by hand and no open waits for it: none that a reader comes to, nor that is pinned, or
// of the same plan. It is nil if any may.
func (w *workers) replaceableByHand(e *entry) func(disks.Key) bool {
	if !e.byHand || w.waitedFor(e) {
		return nil
	}
	return func(k disks.Key) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return k.Plan != e.key.Plan && w.mu.strategy.pins[k.Plan] == policy.Source && !w.mu.readers.comesTo(Key(k))
	}
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

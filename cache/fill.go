package cache

import (
	"cmp"
	"errors"
	"time"

	"rankfs/cache/policy"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// fill gives e a slab: the one that is on NVMe already, or a new one in RAM; if
// RAM has no room for it, one on NVMe, as far as its fallback allows.
func (m *maker) fill(e *entry, demanded bool) error {
	e.clock.Enter(stall.Overhead)
	if !e.inSlot {
		e.size = e.series.Size(e.rank, e.step)
	}
	defer m.admission.leave(e)
	for {
		err := m.bring(e, demanded)
		if !errors.Is(err, errNoRoom) {
			return err
		}
		demanded = demanded || m.waitedFor(e)
		next := m.fallback(e, demanded)
		if next != giveUp && m.nvme != nil && !e.inSlot {
			nerr := m.fillNVMe(e)
			if !errors.Is(nerr, errNoRoom) {
				return nerr
			}
			err = errors.Join(err, nerr)
		}
		if demanded && !e.series.Shared && meta.WholePages(e.size) > m.config.LargestSlab() {
			return m.admission.refuse(e)
		}
		if next != toDiskOrWait {
			return err
		}
		if err := m.admission.awaitRoom(e, err); err != nil {
			return err
		}
	}
}

// bring gives e the slab that is on NVMe already, or a new one in RAM.
func (m *maker) bring(e *entry, demanded bool) error {
	if m.nvme != nil && !e.inSlot && !m.unpacks(e.key) {
		if err := m.restore(e, demanded); err != nil || e.file != nil {
			return err
		}
	}
	return m.fillRAM(e, demanded)
}

// restore opens the slab on NVMe, if there is one. If there is no descriptor for it,
// another batch makes way.
func (m *maker) restore(e *entry, demanded bool) error {
	e.clock.Enter(stall.Disk)
	for {
		f, err := m.nvme.Open(e.key)
		switch {
		case f != nil:
			e.file, e.from = f, policy.Disk
			return m.register(e)
		case !errors.Is(err, errNoRoom) || !m.admission.makeWay(e, demanded, err):
			return err
		}
		m.ram.closeSpare()
	}
}

// fillRAM makes the slab in memory: from a slot, from its packed form, or
// from the series.
func (m *maker) fillRAM(e *entry, demanded bool) error {
	e.clock.Enter(stall.Admission)
	f, err := m.admission.takeRAM(e, demanded)
	if err != nil {
		return err
	}
	e.ram, e.began = f, time.Now()
	m.admission.gotRoom(e)
	if e.inSlot {
		return m.fromPool(e)
	}
	e.clock.Enter(stall.Overhead)
	ctx := stall.With(m.ctx, e.clock)
	unpacking := stall.Enter(ctx, stall.Decode)
	if m.store.unpack(e, f) {
		unpacking.Leave(e.size)
		e.from = policy.Packed
		return m.register(e)
	}
	unpacking.Leave(0)
	if err := m.write(ctx, e, f.mem); err != nil {
		m.giveBack(e)
		return err
	}
	return m.register(e)
}

// fromPool fills a file from a slot, which is given back.
func (m *maker) fromPool(e *entry) error {
	err := m.ram.slotFile.get(e.number, e.ram.mem)
	if err == nil {
		err = m.register(e)
	} else {
		m.giveBack(e)
	}
	if err != nil {
		return err
	}
	m.ram.unstore(e.number, e.size)
	e.inSlot, e.number, e.from = false, 0, policy.RAM
	return nil
}

// fillNVMe makes the slab on disk: a batch may be larger than memory.
func (m *maker) fillNVMe(e *entry) error {
	e.clock.Enter(stall.Disk)
	err := m.nvme.Fill(e.key, e.size, func(mem []byte) error {
		e.clock.Enter(stall.Overhead)
		defer e.clock.Enter(stall.Disk)
		e.began = time.Now()
		return m.write(stall.With(m.ctx, e.clock), e, mem)
	}, m.replaceableByHand(e))
	if err != nil {
		return err
	}
	if e.file, err = m.nvme.Open(e.key); e.file == nil {
		return meta.Worded(errNoRoom, "nvme slab is gone before it was opened: %w", cmp.Or(err, errNoRoom))
	}
	return m.register(e)
}

// A fallback is the next thing that a fill tries when memory has no room for it.
type fallback uint8

const (
	giveUp fallback = iota
	toDisk
	toDiskOrWait // for room
)

// fallback says which fills may go to the disk, and which may wait for room.
func (m *maker) fallback(e *entry, demanded bool) fallback {
	switch {
	case m.exceedsMemory(e.size): // there is no other place for it
		return toDisk
	case e.series.Shared: // the fill that wants the input holds memory that others wait for
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
func (m *maker) retries(e *entry, demanded bool) bool {
	return !e.series.Shared && (!demanded || m.fallback(e, true) == toDiskOrWait)
}

// replaceableByHand says which slabs on disk may make way for e, if it is made ready
// by hand and no open waits for it: none that a reader comes to, nor that is pinned, or
// of the same series. It is nil if any may.
func (m *maker) replaceableByHand(e *entry) func(Key) bool {
	if !e.byHand || m.waitedFor(e) {
		return nil
	}
	return func(k Key) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return k.Series != e.key.Series && m.mu.strategy.pins[k.Series] == policy.Source && !m.mu.readers.comesTo(k)
	}
}

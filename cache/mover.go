package cache

import (
	"context"
	"errors"
	"sync"
	"time"

	"rankfs/cache/policy"
	"rankfs/meta"
)

// A mover brings batches to the level that the policy wants: from a disk or packed back
// to memory before they are opened, from a disk to packed, and from memory to packed
// or to a disk. It is one goroutine, which may wait for a disk that no worker should
// wait for. It takes the cache's lock to choose its next batch and to note the result;
// an entry that it copies is held or checked out meanwhile.
type mover struct {
	*tiers
	mu          *guarded
	descriptors *descriptors
	store       *store
	ctx         context.Context
	token       chan struct{} // one: there may be something to do
	moving      sync.Mutex    // held while a batch is on its way; taken before the cache's
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

// wake says that there may be something to do.
func (m *mover) wake() {
	select {
	case m.token <- struct{}{}:
	default:
	}
}

// fills wakes the mover if memory has hardly room for more batches of a size.
func (m *mover) fills(size int64) {
	if m.ram.free() <= copiedAhead*meta.WholePages(size) {
		m.wake()
	}
}

// move moves one batch, and reports whether there was one.
func (m *mover) move() bool {
	m.moving.Lock()
	defer m.moving.Unlock()
	return m.promote() || m.demote() || m.copyAhead()
}

// promote brings the next batch up, and reports whether there was one to try. Where
// one finds no room, the others, which are needed later, find none.
func (m *mover) promote() bool {
	m.mu.Lock()
	p, ok := m.mu.nextPromotion()
	m.mu.Unlock()
	if !ok {
		return false
	}
	e := &entry{batch: batch{key: p.series.Key(p.rank, p.step), series: p.series, history: history{opened: true}}, request: request{rank: p.rank, step: p.step}}
	e.size = p.series.Size(p.rank, p.step)
	m.mu.Lock()
	due := m.mu.stillDue(e)
	m.mu.Unlock()
	if !due {
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

// bring copies a batch from where it is into memory. It is packed there if it should
// be, or becomes idle there, unless it has come otherwise meanwhile.
func (m *mover) bring(e *entry) error {
	f, err := m.room(e)
	if err != nil {
		return err
	}
	e.ram = f
	if !m.store.unpack(e, f) {
		ok := false
		if m.nvme != nil {
			ok, err = m.nvme.Copy(e.key, f.mem)
		}
		if !ok {
			m.giveBack(e)
			return err
		}
	}
	if at, _ := m.store.target(e.key); at == policy.Packed && m.store.pack(e, f.mem) {
		m.giveBack(e)
		m.store.closeOnDisk(e.key)
		m.converted()
		return nil
	}
	if err := m.register(e); err != nil {
		return err
	}
	m.mu.Lock()
	old, swapped := m.mu.swap(e)
	m.mu.Unlock()
	if !swapped {
		m.descriptors.discard(e)
	} else if old != nil {
		m.descriptors.discard(old)
	}
	return nil
}

// room takes memory for a batch: free memory, or that of a batch that is worth less
// and that the policy wants elsewhere.
func (m *mover) room(e *entry) (*ramFile, error) {
	if m.exceedsMemory(e.size) {
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
		victim := m.mu.eviction.unwanted(&e.batch)
		m.mu.Unlock()
		if victim == nil {
			return nil, err
		}
		m.store.evict(victim)
	}
}

// demote has the next batch in memory packed or written, or one of its forms given up,
// if a worker has nothing to do; it reports whether there was one.
func (m *mover) demote() bool {
	m.mu.Lock()
	e, ok := m.mu.nextMisplaced()
	m.mu.Unlock()
	if !ok {
		return false
	}
	switch {
	case !e.packed:
		m.copyDown(e)
	case e.state == ready: // and idle no more
		m.packed.drop(e.number)
	case !m.store.writePacked(e.batch):
		return true
	}
	m.converted()
	return true
}

// copyDown makes the copy that the policy wants of a slab in memory.
func (m *mover) copyDown(e *entry) {
	defer m.handBack(e, e.inSlot)
	mem, done, err := m.descriptors.content(e)
	if err != nil {
		return
	}
	defer done()
	if at, _ := m.store.target(e.key); at == policy.Packed {
		m.store.pack(e, mem)
	} else {
		m.store.write(e, mem)
	}
}

// copyAhead packs or writes the next batch that is to leave memory soon, so that a fill
// that needs its room has but to drop it. It reports whether there was one. As long as
// memory has room for as many, nothing leaves.
func (m *mover) copyAhead() bool {
	free := m.ram.free()
	m.mu.Lock()
	e := m.mu.nextToLeave(free)
	m.mu.Unlock()
	if e == nil {
		return false
	}
	inSlot := e.inSlot
	measure := m.store.keepCopy(e)
	m.handBack(e, inSlot)
	m.store.tryCodecs(measure)
	return true
}

// awaitCopy has a fill wait while a batch is copied, and reports whether the cache goes on.
func (m *mover) awaitCopy() bool {
	m.wake()
	timer := time.NewTimer(copyPoll)
	defer timer.Stop()
	select {
	case <-m.ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// copyPoll is short beside the copy of a batch that a fill would wait for, and long beside
// the look whether it is done.
const copyPoll = time.Millisecond

// handBack ends the hold of an entry that was copied, or checks it in.
func (m *mover) handBack(e *entry, checkedOut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.moves.copying = false
	if checkedOut {
		m.mu.checkIn(e)
	} else {
		m.mu.unhold(e)
	}
}

func (m *mover) converted() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.count.Converted++
}

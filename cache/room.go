package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/stall"
)

// admission finds room in memory for fills.
type admission struct {
	*tiers
	mu          *guarded
	descriptors *descriptors
	store       *store
	mover       *mover
	ctx         context.Context
}

// takeRAM finds room in RAM, evicting what it may.
func (a *admission) takeRAM(e *entry, demanded bool) (*ramFile, error) {
	size := e.size
	if a.huge(size) {
		return nil, fmt.Errorf("batch of %d bytes, ram budget of %d: %w", size, a.config.RAMBytes, errNoRoom)
	}
	a.evictWorn()
	a.ram.sweep() // what ranks have unmapped since is better than fresh memory
	for {
		if a.overtakes(e) {
			return nil, fullRAM(a.config.RAMBytes, errNoRoom)
		}
		a.descriptors.parkSome()
		f, err := a.ram.take(size)
		if !errors.Is(err, errNoRoom) {
			a.mover.fills(size)
			return f, err
		}
		if lacksFiles(err) && a.descriptors.park() {
			continue
		}
		if !a.makeWay(e, demanded, err) {
			return nil, fullRAM(a.config.RAMBytes, err)
		}
	}
}

// makeWay evicts what is to go next, if anything may, for the lack of something.
// Descriptors are rather taken from what stays on disk without one.
func (a *admission) makeWay(e *entry, demanded bool, lack error) bool {
	victim := a.victim(e, demanded, lack)
	if victim == nil {
		return false
	}
	a.store.evict(victim)
	return true
}

func (a *admission) victim(e *entry, demanded bool, lack error) (victim *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.nvme != nil && disks.OutOfFiles(lack) {
		victim = a.mu.eviction.victimOnNVMe("")
	}
	if victim == nil && (!lacksFiles(lack) || a.mu.slabs.idleFiles()) {
		victim = a.mu.eviction.victim(e, demanded)
	}
	return victim
}

// evictWorn evicts what is spent, but for each reader's last one.
func (a *admission) evictWorn() {
	for {
		a.mu.Lock()
		e := a.mu.eviction.worn()
		a.mu.Unlock()
		if e == nil {
			return
		}
		a.store.evict(e)
	}
}

// idleFiles reports whether anything that nobody has open has a file.
func (s *slabs) idleFiles() bool {
	return s.idle.files+s.idle.spent.Len()+len(s.stale) > 0
}

// lacksFiles reports whether memory has room, and the daemon may not have another
// descriptor or mapping.
func lacksFiles(err error) bool { return disks.OutOfFiles(err) || errors.Is(err, errMappings) }

func fullRAM(budget int64, err error) error {
	if lacksFiles(err) {
		return fmt.Errorf("ranks hold as many batches as the daemon may have files; close some, or raise its limit: %w", err)
	}
	return fmt.Errorf("ranks hold or map all of the %d bytes of ram: %w", budget, err)
}

// awaitRoom waits until a slab was given back, or for a moment: nobody tells
// when the last mapping of a dying slab goes. It fails with why when no open
// waits for e any more, and at once where no wait would help.
func (a *admission) awaitRoom(e *entry, why error) error {
	e.clock.Enter(stall.Admission)
	a.mu.Lock()
	e.stalled = why
	wanted := e.waiters > 0
	if wanted && !slices.Contains(a.mu.room.line, e) {
		a.mu.room.line = append(a.mu.room.line, e)
	}
	a.mu.Unlock()
	if !wanted {
		return why
	}
	if err := a.crowd(e, time.Now()); err != nil {
		return err
	}
	timer := time.NewTimer(roomPoll)
	defer timer.Stop()
	select {
	case <-a.ctx.Done():
		return a.ctx.Err()
	case <-a.mu.room.token:
	case <-timer.C:
	}
	return nil
}

// roomPoll is short beside any fill that had to wait for memory.
const roomPoll = 10 * time.Millisecond

// overtakes reports whether the room that a fill is about to take is what an open
// that came before it waits for. One that needs more than this fill has to wait for
// more anyway: who holds that may need this one first. A part is for a fill that has
// its room.
func (rm *roomQueue) overtakes(e *entry) bool {
	if e.plan.Shared() {
		return false
	}
	for _, o := range rm.line {
		if o == e {
			return false
		}
		if o.waiters > 0 && pages(o.size) <= pages(e.size) {
			return true
		}
	}
	return false
}

// overtakes is roomQueue.overtakes.
func (a *admission) overtakes(e *entry) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.room.overtakes(e)
}

// leave has a fill wait for room no more.
func (a *admission) leave(e *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.room.leaveLine(e)
}

// relieved notes that a fill waits for room no more.
func (a *admission) relieved(e *entry) {
	if e.stalled != nil { // which this goroutine alone sets
		a.mu.Lock()
		defer a.mu.Unlock()
		e.stalled = nil
		a.mu.room.leaveLine(e)
	}
}

// leaveLine has a fill stand in line no more.
func (rm *roomQueue) leaveLine(e *entry) {
	if i := slices.Index(rm.line, e); i >= 0 {
		rm.line = slices.Delete(rm.line, i, i+1)
	}
}

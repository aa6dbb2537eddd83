package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankfs/meta"
	"rankfs/meta/stall"
)

// admission finds room in memory for fills: the file of an evicted batch, or the next
// file that a rank gives back. Room goes to opens in the order of their arrival, but an
// open that needs less goes before one that needs more. It holds the cache's lock while
// it picks a victim or a place in the queue, never while it waits.
type admission struct {
	*tiers
	mu          *guarded
	descriptors *descriptors
	store       *store
	mover       *mover
	ctx         context.Context
}

// takeRAM takes a file in memory, evicting batches if it has to.
func (a *admission) takeRAM(e *entry, demanded bool) (*ramFile, error) {
	size := e.size
	if a.exceedsMemory(size) {
		return nil, meta.Worded(errNoRoom, "a batch of %d bytes is more than the ram budget of %d", size, a.config.RAMBytes)
	}
	a.ram.sweep() // files that ranks have unmapped since are better than fresh memory
	for {
		if a.overtakes(e) {
			return nil, meta.Worded(errNoRoom, "opens that wait have what is free of ram first")
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
			return nil, a.full(size, demanded, err)
		}
	}
}

// full is the error that nothing may make way in memory: an open that waits may have the place of
// all that ranks do not hold, another fill not of what they come to. What others have of
// the memory is not the cache's to take.
func (a *admission) full(size int64, demanded bool, lack error) error {
	left := a.ram.budget.Load()
	budget := meta.FormatBytes(uint64(left))
	switch {
	case lacksFiles(lack):
		return fmt.Errorf("ranks hold as many batches as the daemon may have files; close some, or raise its limit: %w", lack)
	case meta.WholePages(size) > left:
		return meta.Worded(lack, "%s is more than the %s of ram that is left beside the shuffle pool and other programs; remove jobs that are done, or mount with a larger --ram, or with --nvme", meta.FormatBytes(uint64(size)), budget)
	case demanded:
		return meta.Worded(lack, "ranks hold or map all of the %s of ram", budget)
	}
	return meta.Worded(lack, "of the %s of ram nothing may make way: ranks hold it, map it or come to it, or it was asked for by hand", budget)
}

// makeWay evicts the next victim, if there is one; lack is the error of the fill that
// found no room. If an open waits for that, nothing is copied for it.
func (a *admission) makeWay(e *entry, demanded bool, lack error) bool {
	victim, awaited, copies := a.victim(e, demanded, lack)
	switch {
	case copies:
		return a.mover.awaitCopy()
	case victim == nil:
		return false
	case awaited:
		a.store.drop(victim)
	default:
		a.store.evict(victim)
	}
	return true
}

// victim takes the batch to evict next out of the cache, and reports whether an open waits
// for its room, and whether there is none until one was copied. For the lack of descriptors
// it prefers a batch that stays on disk without one.
func (a *admission) victim(e *entry, demanded bool, lack error) (victim *entry, awaited, copies bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	awaited = demanded || e.awaited()
	if a.nvme != nil && meta.OutOfFiles(lack) {
		victim = a.mu.eviction.victimOnNVMe("")
	}
	switch {
	case victim != nil || lacksFiles(lack) && !a.mu.slabs.idleFiles():
	case awaited:
		victim, copies = a.mu.makeWay(e, demanded)
	default:
		victim = a.mu.eviction.victim(e, demanded)
	}
	return victim, awaited, copies
}

// awaitRoom waits until a slab was given back, or for a moment: the kernel does not
// tell when the last mapping of a dying slab goes. It fails with why when no open
// waits for e any more, and at once where no wait would help.
func (a *admission) awaitRoom(e *entry, why error) error {
	lack := stall.Memory
	if lacksFiles(why) {
		lack = stall.Admission
	}
	e.clock.Enter(lack)
	a.mu.Lock()
	e.stalled = why
	wanted := e.awaited()
	if wanted {
		a.mu.room.join(e)
	}
	a.mu.Unlock()
	if !wanted {
		return why
	}
	if lack == stall.Memory {
		a.noteLack(e, time.Now())
	}
	if err := a.checkShortage(e, time.Now()); err != nil {
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

// overtakes reports whether e must leave the room that it is about to take to another
// fill.
func (a *admission) overtakes(e *entry) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.room.overtakes(e)
}

// gotRoom notes that a fill waits for room no more.
func (a *admission) gotRoom(e *entry) {
	if e.stalled != nil { // only this goroutine sets it
		a.mu.Lock()
		defer a.mu.Unlock()
		e.stalled = nil
		a.mu.room.leave(e)
	}
}

// leave has a fill that ends leave the queue for room.
func (a *admission) leave(e *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.room.leave(e)
}

// noteLack keeps for a person how much memory would have been enough.
func (a *admission) noteLack(e *entry, now time.Time) {
	ram, _ := a.ram.stats()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.room.due(now) {
		a.mu.room.lacks(e, ram.Dying, now)
	}
}

// refuse notes that an open found no room for a batch, as there is none for so large a slab.
func (a *admission) refuse(e *entry) error {
	short := &Shortage{Series: e.series, Size: e.size, Memory: a.config.LargestSlab(), TooLarge: true}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.room.last, a.mu.room.seen = *short, time.Now()
	return short
}

// checkShortage looks once in shortageWait at what a fill that finds no room waits
// for. It reports the shortage to the owner of the cache, or returns it if no wait
// would help.
func (a *admission) checkShortage(e *entry, now time.Time) error {
	if a.nvme != nil && !lacksFiles(e.stalled) {
		return nil
	}
	if e.looked.IsZero() {
		e.looked = now
	}
	if now.Sub(e.looked) < shortageWait {
		return nil
	}
	e.looked = now
	ram, _ := a.ram.stats()
	a.mu.Lock()
	short, waiting, tell := a.mu.room.shortage(e, ram.Dying, now)
	a.mu.Unlock()
	if short == nil {
		return nil
	}
	if !short.NoFile && a.stuck(waiting, e.size) {
		short.Stuck = true
		return short
	}
	if tell && a.config.Shortage != nil {
		a.config.Shortage(short)
	}
	return nil
}

// stuck reports whether so much is held by threads that wait that neither a batch
// of a size nor the smallest that these wait for has room: then none of them goes on
// before one is refused. A process of several threads may close a batch in
// another one, so it does not count.
func (a *admission) stuck(all []holding, size int64) bool {
	if a.config.Holds == nil {
		return false
	}
	held := int64(0)
	for _, h := range all {
		if a.config.Holds(h.thread, h.rank, h.step) {
			held += h.bytes
			size = min(size, h.wants.series.Size(h.wants.rank, h.wants.step))
		}
	}
	return held+meta.WholePages(size) > a.config.RAMBytes
}

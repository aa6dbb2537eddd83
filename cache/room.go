package cache

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/stall"
)

// takeRAM finds room in RAM, evicting what it may.
func (c *Cache) takeRAM(e *entry, demanded bool) (*ramFile, error) {
	size := e.size
	if c.huge(size) {
		return nil, fmt.Errorf("batch of %d bytes, ram budget of %d: %w", size, c.config.RAMBytes, errNoRoom)
	}
	for w := c.worn(); w != nil; w = c.worn() {
		c.evict(w)
	}
	c.ram.sweep() // what ranks have unmapped since is better than fresh memory
	for {
		if c.overtakes(e) {
			return nil, fullRAM(c.config.RAMBytes, errNoRoom)
		}
		c.parkSome()
		f, err := c.ram.take(size)
		if !errors.Is(err, errNoRoom) {
			c.mover.fills(size)
			return f, err
		}
		if lacksFiles(err) && c.park() {
			continue
		}
		if !c.makeWay(e, demanded, err) {
			return nil, fullRAM(c.config.RAMBytes, err)
		}
	}
}

// makeWay evicts what is to go next, if anything may, for the lack of something.
// Descriptors are rather taken from what stays on disk without one.
func (c *Cache) makeWay(e *entry, demanded bool, lack error) bool {
	var victim *entry
	if c.nvme != nil && disks.OutOfFiles(lack) {
		victim = c.victimOnNVMe("")
	}
	if victim == nil && (!lacksFiles(lack) || c.idleFiles()) {
		victim = c.victim(e, demanded)
	}
	if victim == nil {
		return false
	}
	c.evict(victim)
	return true
}

// idleFiles reports whether anything that nobody has open has a file.
func (c *Cache) idleFiles() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.shelf.files+c.mu.shelf.spent.Len()+len(c.mu.stale) > 0
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
func (c *Cache) awaitRoom(e *entry, why error) error {
	e.clock.Enter(stall.Admission)
	c.mu.Lock()
	e.stalled = why
	wanted := e.waiters > 0
	if wanted && !slices.Contains(c.mu.line, e) {
		c.mu.line = append(c.mu.line, e)
	}
	c.mu.Unlock()
	if !wanted {
		return why
	}
	if err := c.crowd(e, time.Now()); err != nil {
		return err
	}
	timer := time.NewTimer(roomPoll)
	defer timer.Stop()
	select {
	case <-c.ctx.Done():
		return c.ctx.Err()
	case <-c.room:
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
func (c *Cache) overtakes(e *entry) bool {
	if e.plan.Shared() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.mu.line {
		if o == e {
			return false
		}
		if o.waiters > 0 && pages(o.size) <= pages(e.size) {
			return true
		}
	}
	return false
}

// relieved notes that a fill waits for room no more.
func (c *Cache) relieved(e *entry) {
	if e.stalled != nil { // which this goroutine alone sets
		c.mu.Lock()
		e.stalled = nil
		c.mu.Unlock()
		c.leaveLine(e)
	}
}

// leaveLine has a fill stand in line no more.
func (c *Cache) leaveLine(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.mu.line, e); i >= 0 {
		c.mu.line = slices.Delete(c.mu.line, i, i+1)
	}
}

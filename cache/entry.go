package cache

import (
	"time"

	"rankfs/cache/policy"
	"rankfs/cache/stall"
)

// An entry is a batch that is wanted, or held by somebody. The cache's lock guards
// what changes of it, but for its form: that belongs to who fills it, then stays
// what it is, and at the end belongs to who took the entry out of the cache.
type entry struct {
	kept
	state   state
	done    chan struct{} // closed when state is ready or failed; nil if it was there before
	err     error         // why it failed
	waiters int           // opens waiting on done
	holders int           // opens not released
	threads []int32       // whose they are, as far as that is known
	stale   bool          // its bytes are not what they were, and it is out of the cache
	making
}

// A making is for whom an entry is filled, and how that goes.
type making struct {
	rank, step uint64       // of its plan
	turn       *turn        // on whose account it is
	wisher     *reader      // ahead of whom it is, if no open waited for it
	ahead      uint64       // which step that is of that reader's
	clock      *stall.Clock // of the fill, while state is filling
	waited     bool         // it was wanted when a worker came
	stalled    error        // what it waits for, while it waits
	looked     time.Time    // when that was last looked into
	from       policy.Level // where its bytes came from
}

type state uint8

const (
	filling state = iota // or about to be
	ready
	failed
)

// want finds the entry of a batch, or makes one, which is then the caller's to
// begin, and to have filled, be it from a slot. One that was there in a file and
// that nobody held is the caller's to hold. mu is held.
func (c *Cache) want(p Plan, rank, step uint64) (e *entry, mine bool) {
	k := p.Key(rank, step)
	if e = c.mu.entries[k]; e != nil {
		return e, false
	}
	there := kept{key: k}
	if id := c.mu.shelf.find(k, false); id != 0 {
		if !c.mu.shelf.isPooled(id) {
			return c.pick(id), false
		}
		there = c.mu.shelf.take(id)
	}
	there.plan = p
	e = &entry{kept: there, making: making{rank: rank, step: step}, done: make(chan struct{})}
	c.mu.entries[k] = e
	return e, true
}

// pick takes a batch from the shelf, for somebody who holds it. mu is held.
func (c *Cache) pick(id uint32) *entry {
	e := &entry{kept: c.mu.shelf.take(id), state: ready}
	c.mu.entries[e.key] = e
	return e
}

// known reports whether a batch is there in a form that an open gets, or is being
// made. mu is held.
func (c *Cache) known(k Key) bool {
	return c.mu.entries[k] != nil || c.mu.shelf.find(k, false) != 0
}

// ready is what is known of a batch that is there in a form that an open gets. mu
// is held.
func (c *Cache) ready(k Key) (there kept, ok bool) {
	if e := c.mu.entries[k]; e != nil && e.state == ready {
		return e.kept, true
	}
	if id := c.mu.shelf.find(k, false); id != 0 {
		return c.mu.shelf.at(id), true
	}
	return there, false
}

// isPacked reports whether a batch is there in packed form. mu is held.
func (c *Cache) isPacked(k Key) bool { return c.mu.shelf.find(k, true) != 0 }

// begin says on whose account an entry is filled, and what that begins with. mu
// is held.
func (c *Cache) begin(e *entry, t *turn, with stall.Cause) {
	e.turn, e.clock = t, c.config.Stalls.Clock(with)
}

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

// slabs are the batches that are here, or on their way: entries, what is idle, and
// what is to be given up.
type slabs struct {
	entries map[Key]*entry
	idle    *shelf   // has what is ready and held by nobody, and what is packed
	stale   []*entry // that nobody holds any more
	stalls  *stall.Table
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
func (s *slabs) want(p Plan, rank, step uint64) (e *entry, mine bool) {
	k := p.Key(rank, step)
	if e = s.entries[k]; e != nil {
		return e, false
	}
	there := kept{key: k}
	if id := s.idle.find(k, false); id != 0 {
		if !s.idle.isPooled(id) {
			return s.pick(id), false
		}
		there = s.idle.take(id)
	}
	there.plan = p
	e = &entry{kept: there, making: making{rank: rank, step: step}, done: make(chan struct{})}
	s.entries[k] = e
	return e, true
}

// pick takes a batch from the shelf, for somebody who holds it. mu is held.
func (s *slabs) pick(id uint32) *entry {
	e := &entry{kept: s.idle.take(id), state: ready}
	s.entries[e.key] = e
	return e
}

// known reports whether a batch is there in a form that an open gets, or is being
// made. mu is held.
func (s *slabs) known(k Key) bool {
	return s.entries[k] != nil || s.idle.find(k, false) != 0
}

// ready is what is known of a batch that is there in a form that an open gets. mu
// is held.
func (s *slabs) ready(k Key) (there kept, ok bool) {
	if e := s.entries[k]; e != nil && e.state == ready {
		return e.kept, true
	}
	if id := s.idle.find(k, false); id != 0 {
		return s.idle.at(id), true
	}
	return there, false
}

// isPacked reports whether a batch is there in packed form. mu is held.
func (s *slabs) isPacked(k Key) bool { return s.idle.find(k, true) != 0 }

// begin says on whose account an entry is filled, and what that begins with. mu
// is held.
func (s *slabs) begin(e *entry, t *turn, with stall.Cause) {
	e.turn, e.clock = t, s.stalls.Clock(with)
}

// end takes out all that can be mapped.
func (s *slabs) end(began time.Time) (all []*entry) {
	all = s.stale
	for _, e := range s.entries {
		if e.state == ready { // and whoever holds it may look at it
			all = append(all, &entry{kept: e.kept}) // which is in a file
		}
	}
	for id := range s.idle.all() {
		if e := (&entry{kept: s.idle.at(id)}); !e.packed {
			all = append(all, e)
		}
	}
	clear(s.entries)
	s.idle, s.stale = newShelf(began), nil
	return all
}

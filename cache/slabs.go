package cache

import (
	"time"

	"rankfs/meta/stall"
)

// slabs are all batches that the cache has, or is about to have. A batch with holders or
// waiters is an entry, one without is idle, and one that is to be given up, as its bytes are
// of another version, is stale: each is in one of these three, but for a packed form, which is
// idle beside an entry. The cache's lock guards them.
type slabs struct {
	entries map[Key]*entry // filling, or ready and open
	idle    *idleTable     // ready and open nowhere; and all that is packed
	stale   []*entry       // to be given up
	stalls  *stall.Table
}

// entry finds the entry of a batch of key k, or makes one, which the caller must then begin and
// have filled, even if only from a slot. An entry that was idle in a file
// of its own is ready, and the caller only holds it.
func (s *slabs) entry(of *Series, k Key, rank, step uint64) (e *entry, mine bool) {
	if e = s.entries[k]; e != nil {
		return e, false
	}
	b := batch{key: k}
	if id := s.idle.find(k, false); id != 0 {
		if !s.idle.inSlot(id) {
			return s.activate(id), false
		}
		b = s.idle.take(id)
	}
	b.series = of
	e = &entry{batch: b, request: request{rank: rank, step: step}, done: make(chan struct{})}
	s.entries[k] = e
	return e, true
}

// begin says on whose account an entry is filled, and what that begins with.
func (s *slabs) begin(e *entry, u *usage, with stall.Cause) {
	e.usage, e.clock = u, s.stalls.Clock(with)
}

// activate makes an entry of an idle batch, for the caller to hold.
func (s *slabs) activate(id uint32) *entry {
	e := &entry{batch: s.idle.take(id), state: ready}
	s.entries[e.key] = e
	return e
}

// known reports whether a batch is being filled, or there in a form that an open gets.
func (s *slabs) known(k Key) bool {
	return s.entries[k] != nil || s.idle.find(k, false) != 0
}

// ready finds a batch in a form that an open gets.
func (s *slabs) ready(k Key) (b batch, ok bool) {
	if e := s.entries[k]; e != nil && e.state == ready {
		return e.batch, true
	}
	if id := s.idle.find(k, false); id != 0 {
		return s.idle.at(id), true
	}
	return b, false
}

// isPacked reports whether a batch is there in packed form.
func (s *slabs) isPacked(k Key) bool { return s.idle.find(k, true) != 0 }

// idleFiles reports whether anything that is open nowhere has a file.
func (s *slabs) idleFiles() bool {
	return s.idle.files+len(s.stale) > 0
}

// keys are the keys of all that is here of a series.
func (s *slabs) keys(series [16]byte, keys map[Key]struct{}) {
	for k := range s.entries {
		if k.Series == series {
			keys[k] = struct{}{}
		}
	}
	for id := range s.idle.all() {
		if k := s.idle.name(id).key; k.Series == series {
			keys[k] = struct{}{}
		}
	}
}

// end takes out all that can be mapped, and forgets the rest.
func (s *slabs) end(began time.Time) (all []*entry) {
	all = s.stale
	for _, e := range s.entries {
		if e.state == ready { // a copy, as its holders may look at the entry
			all = append(all, &entry{batch: e.batch})
		}
	}
	for id := range s.idle.all() {
		if e := (&entry{batch: s.idle.at(id)}); !e.packed {
			all = append(all, e)
		}
	}
	clear(s.entries)
	s.idle, s.stale = newIdleTable(began), nil
	return all
}

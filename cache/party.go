package cache

import (
	"time"

	"rankfs/cache/fair"
	"rankfs/cache/policy"
)

// Parties are those who share memory: who reads one plan after another, the job of
// each epoch in turn. A plan that other plans copy from has none: its batches are as
// nobody's. The cache's lock guards all of it.
type parties struct {
	of    map[[16]byte]*party // by the plans that they read, or will read next
	count int                 // when they were weighed last
}

// A party's batches lie in lanes of their own, so that what is to go first is known
// of each.
type party struct {
	seen     time.Time
	late     float64 // the share of its opens that waited, of late
	lane     uint8   // of the shelf, for what no reader is known to come to
	standing fair.Standing
}

const (
	// lateOpens is over how many opens that share goes.
	lateOpens = 64

	// lateShare of a party's opens wait, if it waits for what it lacks. One open in
	// the last hundred is enough: who has all that it wants has none.
	lateShare = 0.005
)

// party is that of a plan of which a batch is opened now; nil if it has none. mu is
// held.
func (rs *readers) party(p Plan, now time.Time) *party {
	if p.Shared() {
		return nil
	}
	y := rs.tenants.of[p.ID()]
	if y == nil && len(rs.tenants.of) >= maxReaders {
		return nil
	}
	if y == nil {
		y = &party{lane: rs.laneFor(nil)}
		rs.tenants.of[p.ID()] = y
	}
	y.seen = now
	return y
}

// opens notes that an open of a batch waits, or not.
func (y *party) opens(waits bool) {
	if y == nil {
		return
	}
	share := 0.0
	if waits {
		share = 1
	}
	y.late += (share - y.late) / lateOpens
}

// succeed has the party of a plan be that of the next one, which may be nil.
func (s *parties) succeed(p, next Plan) {
	if y := s.of[p.ID()]; y != nil && next != nil && s.of[next.ID()] == nil {
		s.of[next.ID()] = y
	}
}

// part ends the party of a job that has read its last epoch, with its last reader.
func (s *parties) part(j *job) {
	if len(j.readers) == 0 {
		delete(s.of, j.plan.ID())
	}
}

// forget drops those that have been silent for long.
func (s *parties) forget(now time.Time, idle time.Duration) {
	for id, y := range s.of {
		if now.Sub(y.seen) > idle {
			delete(s.of, id)
		}
	}
}

// weigh says how parties stand. One alone has no standing: there is nobody to take
// anything from it. mu is held.
func (ev *eviction) weigh() {
	s, shelf := &ev.readers.tenants, ev.slabs.idle
	for _, y := range s.of {
		y.standing = fair.Standing{Due: -1}
	}
	s.count = 0
	for _, y := range s.of {
		if y.standing.Due < 0 { // of several plans
			y.standing = fair.Standing{}
			s.count++
		}
	}
	if s.count < 2 {
		return
	}
	for v, p := range shelf.plans {
		if p == nil {
			continue
		}
		if y := s.of[p.ID()]; y != nil {
			y.standing.Held += shelf.bytes[v]
		}
	}
	for id, j := range ev.readers.jobs {
		for _, r := range j.readers {
			if y := s.of[id]; y != nil && r.run >= trusted {
				y.standing.Needs += int64(ev.readers.window(r)+2) * pages(r.size)
			}
		}
	}
	for _, y := range s.of {
		y.standing.Due, y.standing.Late = ev.budget.Load()/int64(s.count), y.late > lateShare
	}
}

// claim is that on k, of who brings a batch of a plan, nil if nobody does. Nobody has
// a claim on what somebody pinned, or on what is nobody's, as parts are that fills of
// several may copy from; who brings such a part has none. mu is held.
func (ev *eviction) claim(k *kept, p Plan) fair.Claim {
	giver := ev.readers.tenants.of[k.plan.ID()]
	var taker *party
	if p != nil {
		taker = ev.readers.tenants.of[p.ID()]
	}
	switch {
	case giver == nil || giver == taker || ev.strategy.pins[k.key.Plan] != policy.Source:
		return fair.Usual
	case taker == nil && giver.standing.Held > giver.standing.Due:
		return fair.Usual
	case taker == nil:
		return fair.On(giver.standing, fair.Standing{})
	}
	on := fair.On(giver.standing, taker.standing)
	if on == fair.Claimed && !k.opened {
		return fair.Usual
	}
	return on
}

// lane is where what is of a plan is laid that no reader is known to come to.
func (s *parties) lane(p Plan) uint8 {
	if y := s.of[p.ID()]; y != nil {
		return y.lane
	}
	return 0
}

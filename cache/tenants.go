package cache

import (
	"time"

	"rankfs/cache/fair"
	"rankfs/cache/policy"
)

// Tenants are the jobs that share memory. A tenant reads one plan after another, that
// of each epoch. A plan that other plans copy from has none: its batches belong to no
// job. The cache's lock guards them.
type tenants struct {
	of map[[16]byte]*tenant // by the plans that they read, or will read next
}

// A tenant has a lane of idle batches of its own, so that what is to go first is known
// of each.
type tenant struct {
	seen     time.Time
	late     float64 // the share of its opens that waited, of late
	lane     uint8   // of the idle batches that no reader is known to come to
	standing fair.Standing
}

const (
	// lateOpens is over how many opens that share goes.
	lateOpens = 64

	// lateShare of a tenant's opens wait, if it waits for what it lacks. One open in
	// the last hundred is enough: a job that has all that it wants has none.
	lateShare = 0.005
)

// opens notes that an open of a batch waits, or not. There may be no tenant.
func (t *tenant) opens(waits bool) {
	if t == nil {
		return
	}
	share := 0.0
	if waits {
		share = 1
	}
	t.late += (share - t.late) / lateOpens
}

// succeed has the tenant of a plan be that of the next one, which may be nil.
func (ts *tenants) succeed(p, next Plan) {
	if t := ts.of[p.ID()]; t != nil && next != nil && ts.of[next.ID()] == nil {
		ts.of[next.ID()] = t
	}
}

// end forgets the tenant of a job whose last reader has read its last epoch.
func (ts *tenants) end(j *job) {
	if len(j.readers) == 0 {
		delete(ts.of, j.plan.ID())
	}
}

// dropSilent forgets the tenants that have been silent for long.
func (ts *tenants) dropSilent(now time.Time, idle time.Duration) {
	for id, t := range ts.of {
		if now.Sub(t.seen) > idle {
			delete(ts.of, id)
		}
	}
}

// lane is that of the batches of a plan that no reader is known to come to.
func (ts *tenants) lane(p Plan) uint8 {
	if t := ts.of[p.ID()]; t != nil {
		return t.lane
	}
	return 0
}

// weigh says how tenants stand. One alone has no standing: there is no other to take
// anything from it.
func (ev *eviction) weigh() {
	ts, idle := &ev.readers.tenants, ev.slabs.idle
	for _, t := range ts.of {
		t.standing = fair.Standing{Due: -1}
	}
	count := int64(0)
	for _, t := range ts.of {
		if t.standing.Due < 0 { // of several plans
			t.standing = fair.Standing{}
			count++
		}
	}
	if count < 2 {
		return
	}
	for n, p := range idle.plans {
		if p == nil {
			continue
		}
		if t := ts.of[p.ID()]; t != nil {
			t.standing.Held += idle.bytes[n]
		}
	}
	for id, j := range ev.readers.jobs {
		for _, r := range j.readers {
			if t := ts.of[id]; t != nil && r.Run >= trusted {
				t.standing.Needs += int64(ev.readers.window(r)+2) * pages(r.size)
			}
		}
	}
	for _, t := range ts.of {
		t.standing.Due, t.standing.Late = ev.budget.Load()/count, t.late > lateShare
	}
}

// claim is what the tenant of a plan, nil if there is no newcomer, may take b for.
// There is no claim on what is pinned, or on what belongs to no job, as parts do that
// fills of several may copy from; a fill that brings such a part has none.
func (ev *eviction) claim(b *batch, p Plan) fair.Claim {
	giver := ev.readers.tenants.of[b.plan.ID()]
	var taker *tenant
	if p != nil {
		taker = ev.readers.tenants.of[p.ID()]
	}
	switch {
	case giver == nil || giver == taker || ev.strategy.pins[b.key.Plan] != policy.Source:
		return fair.Usual
	case taker == nil && giver.standing.Held > giver.standing.Due:
		return fair.Usual
	case taker == nil:
		return fair.On(giver.standing, fair.Standing{})
	}
	on := fair.On(giver.standing, taker.standing)
	if on == fair.Claimed && !b.opened {
		return fair.Usual
	}
	return on
}

package cache

import (
	"time"

	"rankfs/cache/fair"
)

// Tenants are the jobs that share memory, as far as the cache can tell them apart: it is
// told of series, not of processes. So a tenant is the readers of one series and then of the
// next, that of each epoch, unless the series says whose it is, as parts of the shuffle pool do:
// two jobs that read the same series are one tenant, a job that reads two views is two. A
// series that other series copy from has none: its batches belong to no job. The cache's lock
// guards them.
type tenants struct {
	of       map[[16]byte]*tenant // by the jobs of the series that they read, or will read next
	accounts *accounts
}

// A tenant has a heap of idle batches of its own, so that what is to go first is known
// of each.
type tenant struct {
	activeSpan
	late       float64    // the share of its opens that waited, of late
	random     float64    // the share of its opens that were not foreseen, of late
	confidence confidence // in its readers
	heap       uint8      // of the idle batches that no reader is known to come to
	usage      *usage     // of workers
	standing   fair.Standing
	resting    bool // when the standing was weighed
	read       bool // by a rank, then
}

const (
	// lateOpens is over how many opens that share goes.
	lateOpens = 64

	// lateShare of a tenant's opens wait, if it waits for what it lacks. One open in
	// the last hundred is enough: a job that has all that it wants has none.
	lateShare = 0.005

	// randomOpens is over how many opens the share of those goes that were not foreseen: a
	// job in order is known by its first dozen, and one at random that opens two in a row
	// by chance is none.
	randomOpens = 16
)

// opens notes whether an open of a batch waits, and was foreseen. There may be no tenant.
func (t *tenant) opens(waits, foreseen bool) {
	if t == nil {
		return
	}
	share := func(is bool) float64 {
		if is {
			return 1
		}
		return 0
	}
	t.late += (share(waits) - t.late) / lateOpens
	t.random += (share(!foreseen) - t.random) / randomOpens
}

// account is the account of a tenant, which may be nil.
func (ts *tenants) account(t *tenant) *usage {
	if t == nil {
		return ts.accounts.others
	}
	return t.usage
}

// confidence is the confidence in the readers of a series; nil if it has no tenant.
func (ts *tenants) confidence(s *Series) *confidence {
	if t := ts.reading(s); t != nil {
		return &t.confidence
	}
	return nil
}

// succeed has the tenant of a series be that of the next one, which may be nil.
func (ts *tenants) succeed(s, next *Series) {
	if t := ts.reading(s); t != nil && next != nil && ts.reading(next) == nil {
		ts.of[next.Job.ID] = t
	}
}

// reading is the tenant that reads a series; nil if there is none.
func (ts *tenants) reading(s *Series) *tenant { return ts.of[s.Job.ID] }

// end forgets the tenant of an epoch whose last reader is through, if no other follows. A job
// of several series may be reading another, and is forgotten when it is silent.
func (ts *tenants) end(ep *epoch) {
	if id := ep.series.ID; len(ep.readers) == 0 && ep.series.Job.ID == id {
		delete(ts.of, id)
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

// heap is the heap of the batches of a series that no reader is known to come to.
func (ts *tenants) heap(s *Series) uint8 {
	if t := ts.reading(s); t != nil {
		return t.heap
	}
	return 0
}

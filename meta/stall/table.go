package stall

import (
	"sync"
	"time"
)

// The bounds of a table.
const (
	maxJobs  = 64   // those of a node; the one that was silent longest is forgotten
	maxRanks = 4096 // of all jobs, as many as the cache follows
)

// A Table is the account of all jobs of a node. A job is a dataset's name and
// a view, whatever the epoch; a dataset that was registered later has others. Its methods
// may be called concurrently. The lock guards the accounts, down to each rank's; the locks
// of clocks are taken under it.
type Table struct {
	now   func() time.Time
	flows *Flows

	mu struct {
		sync.Mutex
		jobs      map[jobKey]*job
		ranks     int // followed, of all jobs
		others    Totals
		forgotten int // jobs whose totals are in others
	}
}

// A jobKey tells jobs apart: by a name, and which dataset of that name.
type jobKey struct {
	name string
	of   int64
}

// NewTable makes an empty table. Now is time.Now, but in tests.
func NewTable(now func() time.Time) *Table {
	t := &Table{now: now, flows: NewFlows(now)}
	t.mu.jobs = make(map[jobKey]*job)
	return t
}

// Clock starts the clock of a fill, whose bytes the table adds up too.
func (t *Table) Clock(c Cause) *Clock { return newClock(t.now, t.flows, c) }

// job finds or makes the account of a job. mu is held.
func (t *Table) job(k jobKey, now time.Time) *job {
	j := t.mu.jobs[k]
	if j == nil {
		for len(t.mu.jobs) >= maxJobs && t.forget() {
		}
		j = newJob(now)
		t.mu.jobs[k] = j
	}
	if now.After(j.last) {
		j.last = now
	}
	return j
}

// forget drops the job that was silent longest, and has no open that waits. It
// reports whether there was one: those that wait are bounded by the cache. mu is
// held.
func (t *Table) forget() bool {
	var oldest jobKey
	for k, j := range t.mu.jobs {
		if j.waits == nil && (oldest == jobKey{} || j.last.Before(t.mu.jobs[oldest].last)) {
			oldest = k
		}
	}
	j := t.mu.jobs[oldest]
	if j == nil {
		return false
	}
	t.mu.others.add(j.totals)
	t.mu.forgotten++
	t.mu.ranks -= len(j.ranks)
	delete(t.mu.jobs, oldest)
	return true
}

// rank finds or makes the account of a rank; nil: there are too many, and this
// one's time does not count. mu is held.
func (t *Table) rank(j *job, number uint64) *rank {
	r := j.ranks[number]
	if r == nil && t.mu.ranks < maxRanks {
		r = new(rank)
		j.ranks[number] = r
		t.mu.ranks++
	}
	return r
}

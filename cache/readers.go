package cache

import (
	"sync/atomic"
	"time"

	"rankfs/cache/ahead"
)

// readers are the ranks that read on this node: where each is in which plan, how
// fast it goes, and what it opens next. The cache's lock guards them.
type readers struct {
	config  *Config
	budget  *atomic.Int64 // bytes of memory
	slabs   *slabs        // says what is missing
	rates   *rates
	jobs    map[[16]byte]*job // by plan
	count   int               // of readers, of all jobs
	traces  traces            // of what they opened
	tenants tenants           // that they are of
}

// maxReaders bounds how many ranks are followed at once on one node.
const maxReaders = 4096

// reader finds or makes the reader of a rank; nil if there are too many.
func (rs *readers) reader(p Plan, rank, step uint64, now time.Time) (*job, *reader) {
	j := rs.jobs[p.ID()]
	if j != nil && j.readers[rank] != nil {
		return j, j.readers[rank]
	}
	if rs.count >= maxReaders {
		rs.dropSilent(now)
	}
	if rs.count >= maxReaders {
		return nil, nil
	}
	r := &reader{rank: rank, Cursor: ahead.Cursor{Pos: step, Scan: step}, stray: none, seen: now}
	return rs.add(p, r), r
}

// add adds a reader to the job of p.
func (rs *readers) add(p Plan, r *reader) *job {
	j := rs.jobs[p.ID()]
	if j == nil {
		j = &job{plan: p, readers: make(map[uint64]*reader)}
		rs.jobs[p.ID()] = j
	}
	if j.readers[r.rank] == nil {
		rs.count++
	}
	j.readers[r.rank] = r
	return j
}

// remove forgets a reader.
func (rs *readers) remove(j *job, r *reader) {
	delete(j.readers, r.rank)
	rs.count--
	if len(j.readers) == 0 {
		delete(rs.jobs, j.plan.ID())
	}
}

// dropSilent forgets readers and tenants that have been silent for long.
func (rs *readers) dropSilent(now time.Time) {
	rs.traces.dropSilent(now, rs.config.Idle)
	rs.tenants.dropSilent(now, rs.config.Idle)
	for _, j := range rs.jobs {
		for _, r := range j.readers {
			if now.Sub(r.seen) > rs.config.Idle {
				rs.remove(j, r)
			}
		}
	}
}

// end forgets all readers.
func (rs *readers) end() {
	clear(rs.jobs)
	clear(rs.tenants.of)
	rs.count = 0
}

// served notes that an open that waited for e was answered: a reader that waits is not
// one that needs less.
func (rs *readers) served(e *entry) {
	if j := rs.jobs[e.plan.ID()]; j != nil {
		if r := j.readers[e.rank]; r != nil && r.Pos == e.step+1 {
			r.served = time.Now()
		}
	}
}

// restart reckons anew when readers come to what they read.
func (rs *readers) restart(now time.Time) {
	for _, j := range rs.jobs {
		for _, r := range j.readers {
			r.set(now)
		}
	}
	for _, r := range rs.traces.routes {
		r.set(now)
	}
}

// tenant is that of a plan of which a batch is opened now; nil if it has none.
func (rs *readers) tenant(p Plan, now time.Time) *tenant {
	if p.Shared() {
		return nil
	}
	t := rs.tenants.of[p.ID()]
	if t == nil && len(rs.tenants.of) >= maxReaders {
		return nil
	}
	if t == nil {
		t = &tenant{lane: rs.laneFor(nil)}
		rs.tenants.of[p.ID()] = t
	}
	t.seen = now
	return t
}

// laneFor is a lane of idle batches of its own for a reader of j, as far as there are
// any; or that of another reader, best of its job.
func (rs *readers) laneFor(j *job) uint8 {
	var used [maxLanes]int
	for _, other := range rs.jobs {
		for _, r := range other.readers {
			if used[r.lane]++; other != j {
				used[r.lane]++
			}
		}
	}
	for _, r := range rs.traces.routes {
		used[r.lane] += 2
	}
	for _, t := range rs.tenants.of {
		used[t.lane] += 2
	}
	lanes, best := &rs.slabs.idle.lanes, uint8(1)
	for lane := uint8(1); lane < maxLanes; lane++ {
		if used[lane] < used[best] || used[lane] == used[best] && lanes[lane].count < lanes[best].count {
			best = lane
		}
	}
	return best
}

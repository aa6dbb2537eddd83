package cache

import (
	"sync/atomic"
	"time"

	"rankfs/cache/ahead"
	"rankfs/cache/policy"
)

// readers are those who read on this node: which rank is where in which plan, how
// fast it goes, and what it opens next.
type readers struct {
	config  *Config
	budget  *atomic.Int64 // bytes of memory
	slabs   *slabs
	rates   *rates
	jobs    map[[16]byte]*job // by plan
	count   int               // of readers, of all jobs
	traces  traces            // of what they opened
	tenants parties
}

// end forgets all readers.
func (rs *readers) end() {
	clear(rs.jobs)
	clear(rs.tenants.of)
	rs.count = 0
}

// A job is those who read one plan: the ranks that go through it, each a reader.
type job struct {
	plan    Plan
	readers map[uint64]*reader // by rank
	next    Plan               // of the epoch after this one; nil if that is not known
	asked   bool               // next was asked for
	turns   [2]turn            // for what readers in order need, and for what else is opened
}

// A reader is one rank going through a plan, as its opens show it. Its steps
// count on into the next epoch: those of that one begin at the plan's Steps.
type reader struct {
	rank   uint64
	pos    uint64        // the step that is to be opened next
	size   int64         // of a batch, as last seen; zero if none was ready yet
	seen   time.Time     // when a step was opened
	served time.Time     // when an open that waited was answered
	pace   time.Duration // from one step to the next, but for what was waited; zero until there were two in order
	run    int           // opens in order
	stray  uint64        // the step after one that was opened far from here
	scan   uint64        // no step from pos to here is missing
	barred uint64        // nothing is made ready from this step on; pos or more
	bar    bool
	tempo  tempo
	course course
	lane   uint8  // of the shelf, where what it comes to is in order
	route  *route // if it is one
}

// maxReaders bounds how many ranks are followed at once on one node.
const maxReaders = 4096

// near is how many steps a reader may leave out without being another one.
const near = 16

// trusted is how many opens in order make a reader: fewer may be somebody's cat.
const trusted = 2

// A move is what an open says of its reader.
type move struct {
	expected bool // it was to be expected
	misses   bool // something that the reader comes to is not there
	asks     *job // whose next epoch is to be asked for; nil if none is
}

// follow notes that a rank opens a batch.
func (rs *readers) follow(e *entry, p Plan, rank, step uint64, now time.Time) (m move) {
	rs.trace(p, rank, step, now)
	j, r := rs.reader(p, rank, step, now)
	if r == nil {
		return m
	}
	moved, expected := r.opens(step, min(near, uint64(rs.config.MaxAhead)), now)
	if !moved {
		return move{expected: expected}
	}
	j.plan = p
	if e.state == ready {
		r.size = e.size
	}
	if r.run == trusted {
		r.set(now)
		r.lane = rs.laneFor(j)
	}
	if m.expected = r.run >= trusted; m.expected && !j.asked {
		m.asks = j
	}
	if r.pos == p.Steps() {
		rs.tenants.succeed(j.plan, j.next)
		j, r = rs.turnPage(j, r)
	}
	m.misses = r != nil && rs.misses(j, r)
	return m
}

// misses reports whether there is anything to make ready for r: to wake a worker for
// nothing would cost the rank 10 us.
func (rs *readers) misses(j *job, r *reader) bool {
	_, _, ok := rs.missing(j, rs.traces.guide(j.plan, r))
	return ok
}

// reader finds or makes the reader of a rank; nil if there are too many.
func (rs *readers) reader(p Plan, rank, step uint64, now time.Time) (*job, *reader) {
	j := rs.jobs[p.ID()]
	if j != nil && j.readers[rank] != nil {
		return j, j.readers[rank]
	}
	if rs.count >= maxReaders {
		rs.forget(now)
	}
	if rs.count >= maxReaders {
		return nil, nil
	}
	r := &reader{rank: rank, pos: step, stray: none, seen: now}
	return rs.enter(p, r), r
}

// enter adds a reader to the job of p. mu is held.
func (rs *readers) enter(p Plan, r *reader) *job {
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

// opens moves a reader to where it opens a step. One that is far from where a
// reader is moves it only if the next one follows: a job that was resumed goes
// on from there, while somebody who looks around does not. So a job's batches
// are made ready ahead whoever else opens some of them.
func (r *reader) opens(step, near uint64, now time.Time) (moved, expected bool) {
	switch {
	case step >= r.pos && step-r.pos < near:
		if r.run > 0 {
			took := now.Sub(r.seen) / time.Duration(step+1-r.pos)
			r.pace = blend(r.pace, r.worked(now)/time.Duration(step+1-r.pos))
			r.tempo.add(took)
		}
		r.run = max(1, r.run+1-int(step-r.pos))
	case step == r.stray || r.run < trusted:
		r.run, r.pace, r.tempo, r.scan = 1, 0, tempo{}, 0
	default:
		r.stray = step + 1
		if step < r.pos && r.pos-step <= near { // one of a rank's several workers is a little late
			r.run++
			return false, true
		}
		return false, false
	}
	r.pos, r.seen, r.bar, r.stray = step+1, now, false, none
	r.scan = max(r.scan, r.pos)
	return true, true
}

// worked is how long a reader has had what it opened last.
func (r *reader) worked(now time.Time) time.Duration {
	if r.served.After(r.seen) {
		return max(now.Sub(r.served), 0)
	}
	return now.Sub(r.seen)
}

// serve notes that an open that waited for e was answered: a reader that waits is not
// one that needs less. mu is held.
func (rs *readers) serve(e *entry) {
	if j := rs.jobs[e.plan.ID()]; j != nil {
		if r := j.readers[e.rank]; r != nil && r.pos == e.step+1 {
			r.served = time.Now()
		}
	}
}

const none = ^uint64(0)

// turnPage takes a reader that is through with its epoch to the next one. It is
// not forgotten that it reads in order, nor how fast. mu is held.
func (rs *readers) turnPage(j *job, r *reader) (*job, *reader) {
	rs.leave(j, r)
	if r.run < trusted {
		return nil, nil
	}
	if j.next == nil {
		rs.tenants.part(j)
		return nil, nil
	}
	next := *r
	next.pos, next.scan, next.bar = 0, 0, false
	next.course.step -= int64(j.plan.Steps())
	return rs.enter(j.next, &next), &next
}

// leave forgets a reader. mu is held.
func (rs *readers) leave(j *job, r *reader) {
	delete(j.readers, r.rank)
	rs.count--
	if len(j.readers) == 0 {
		delete(rs.jobs, j.plan.ID())
	}
}

// forget drops the readers that have been silent for long. mu is held.
func (rs *readers) forget(now time.Time) {
	rs.traces.forget(now, rs.config.Idle)
	rs.tenants.forget(now, rs.config.Idle)
	for _, j := range rs.jobs {
		for _, r := range j.readers {
			if now.Sub(r.seen) > rs.config.Idle {
				rs.leave(j, r)
			}
		}
	}
}

// turn is the account of what is made ready for r.
func (j *job) turn(r *reader) *turn {
	if r.run >= trusted {
		return &j.turns[0]
	}
	return &j.turns[1]
}

// at is where a step stands that may be beyond the epoch's end. mu is held.
func (j *job) at(step uint64) (p Plan, s uint64, ok bool) {
	steps := j.plan.Steps()
	if step < steps {
		return j.plan, step, true
	}
	if step -= steps; j.next == nil || step >= j.next.Steps() {
		return nil, 0, false
	}
	return j.next, step, true
}

// missing is the first step in a reader's window that nobody has begun. mu is held.
func (rs *readers) missing(j *job, r *reader) (p Plan, step uint64, ok bool) {
	last := r.pos + rs.window(r)
	if r.bar {
		last = min(last, r.barred)
	}
	if r.route != nil {
		return rs.missingOn(r.route, last)
	}
	for ; r.scan < last; r.scan++ {
		if p, step, ok = j.at(r.scan); !ok {
			return nil, 0, false
		}
		if !rs.slabs.known(p.Key(r.rank, step)) && p.Ahead(r.rank, step) {
			return p, step, true
		}
	}
	return nil, 0, false
}

// due is when a reader comes to a step, from now. mu is held.
func (r *reader) due(step uint64, now time.Time) time.Duration {
	return time.Duration(step+1-r.pos)*r.pace - now.Sub(r.seen)
}

// window is how many steps ahead of a reader are worth having. It grows with trust:
// one open may be somebody's cat. All readers share the memory evenly.
func (rs *readers) window(r *reader) uint64 {
	size := max(pages(r.size), 1)
	share := rs.budget.Load() / int64(max(1, rs.count)) / size
	fit := max(1, share-2) // beside the one being read and the one just read
	want := int64(r.run)
	if r.pace > 0 && r.run > trusted {
		latency := rs.rates.from[policy.Source].duration(float64(size))
		want = ahead.Steps(latency.Seconds(), r.pace.Seconds(), rs.rates.fills.AtOnce())
	}
	return uint64(max(1, min(want, fit, int64(rs.config.MaxAhead))))
}

// balk notes that a fill ahead of its reader failed: there is no use in trying
// again before the rank has moved. mu is held.
func (rs *readers) balk(e *entry) {
	r := e.wisher
	if r == nil || e.ahead < r.pos {
		return
	}
	r.barred, r.bar = e.ahead, true
	r.scan = min(r.scan, e.ahead)
}

// lost notes that a batch is no longer there that readers may have ahead of
// them. mu is held.
func (rs *readers) lost(k Key) {
	for _, j := range rs.jobs {
		if rank, step, ok := j.plan.Find(k); ok && j.readers[rank] != nil && step >= j.readers[rank].pos {
			j.readers[rank].scan = min(j.readers[rank].scan, step)
		}
	}
	for _, r := range rs.traces.routes {
		if at, known := r.comesTo(k); known && at >= r.pos {
			r.scan = min(r.scan, at)
		}
	}
}

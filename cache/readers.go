package cache

import (
	"slices"
	"sync/atomic"
	"time"

	"rankfs/cache/ahead"
)

// readers are the ranks that read on this node: where each is in which series, how
// fast it goes, and what it opens next. The cache's lock guards them.
type readers struct {
	config  *Config
	budget  *atomic.Int64 // bytes of memory
	slabs   *slabs        // says what is missing
	rates   *rates
	epochs  map[[16]byte]*epoch // by series
	count   int                 // of readers, of all epochs
	traces  traces              // of what they opened
	tenants tenants             // that they are of
}

// maxReaders bounds how many ranks are followed at once on one node.
const maxReaders = 4096

// reader finds or makes the reader of a rank that opens a step; nil if there are too many.
func (rs *readers) reader(s *Series, rank, step uint64, now time.Time) (*epoch, *reader) {
	if ep := rs.epochs[s.ID]; ep != nil {
		if r := ep.opener(rank, step, rs.near()); r != nil {
			for _, other := range ep.silent(r, now) {
				rs.remove(ep, other)
			}
			return ep, r
		}
	}
	if rs.count >= maxReaders {
		rs.dropSilent(now)
	}
	if rs.count >= maxReaders {
		return nil, nil
	}
	run := rs.tenants.confidence(s).first() - 1
	r := &reader{rank: rank, Cursor: ahead.Cursor{Pos: step, Scan: step, Run: run}, stray: none, activeSpan: activeSpan{now, now}}
	return rs.add(s, r), r
}

// near is how far from where a reader is an open is still its own.
func (rs *readers) near() uint64 { return min(near, uint64(rs.config.MaxAhead)) }

// add adds a reader to the epoch of p, in the place of the one of its rank that is silent
// longest if there are too many.
func (rs *readers) add(s *Series, r *reader) *epoch {
	ep := rs.epochs[s.ID]
	if ep == nil {
		ep = &epoch{series: s, readers: make(map[uint64][]*reader)}
		rs.epochs[s.ID] = ep
	}
	its := ep.readers[r.rank]
	for _, other := range its {
		if at, ok := other.others.take(r.Pos); ok && r.tempo.count == 0 {
			r.tempo.add(r.seen.Sub(at))
		}
	}
	if len(its) >= beside {
		oldest := slices.MinFunc(its, func(a, b *reader) int { return a.seen.Compare(b.seen) })
		rs.tenants.confidence(s).ends(oldest.Cursor)
		its[slices.Index(its, oldest)] = r
		return ep
	}
	ep.readers[r.rank] = append(its, r)
	rs.count++
	return ep
}

// remove forgets a reader.
func (rs *readers) remove(ep *epoch, r *reader) {
	its := ep.readers[r.rank]
	if its = slices.DeleteFunc(its, func(other *reader) bool { return other == r }); len(its) > 0 {
		ep.readers[r.rank] = its
	} else {
		delete(ep.readers, r.rank)
	}
	rs.count--
	if len(ep.readers) == 0 {
		delete(rs.epochs, ep.series.ID)
	}
}

// dropSilent forgets readers and tenants that have been silent for long.
func (rs *readers) dropSilent(now time.Time) {
	rs.traces.dropSilent(now, rs.config.Idle)
	rs.tenants.dropSilent(now, rs.config.Idle)
	for _, ep := range rs.epochs {
		for _, r := range slices.Collect(ep.all()) {
			if now.Sub(r.seen) > rs.config.Idle {
				rs.remove(ep, r)
			}
		}
	}
}

// end forgets all readers.
func (rs *readers) end() {
	clear(rs.epochs)
	clear(rs.tenants.of)
	rs.count = 0
}

// served notes that an open that waited for e was answered: a reader that waits is not
// one that needs less.
func (rs *readers) served(e *entry) {
	if ep := rs.epochs[e.series.ID]; ep != nil {
		for _, r := range ep.readers[e.rank] {
			if r.Pos == e.step+1 {
				r.served = time.Now()
			}
		}
	}
}

// restart reckons anew when readers come to what they read.
func (rs *readers) restart(now time.Time) {
	for _, ep := range rs.epochs {
		for r := range ep.all() {
			r.set(now)
		}
	}
	for _, r := range rs.traces.routes {
		r.set(now)
	}
}

// tenant is the tenant of a series of which a batch is opened now; nil if it has none.
func (rs *readers) tenant(s *Series, now time.Time) *tenant {
	if s.Shared {
		return nil
	}
	job := s.Job
	t := rs.tenants.of[job.ID]
	if t == nil && len(rs.tenants.of) >= maxReaders {
		return nil
	}
	if t == nil {
		t = &tenant{activeSpan: activeSpan{began: now}, heap: rs.heapFor(nil), random: 1, confidence: newConfidence(s), usage: newJob(&rs.tenants.accounts.all)}
		rs.tenants.of[job.ID] = t
	}
	t.seen = now
	t.usage.weigh(job.Weight)
	return t
}

// heapFor is a heap of idle batches of its own for a reader of ep, as far as there are
// any; or that of another reader, best of its epoch.
func (rs *readers) heapFor(ep *epoch) uint8 {
	var used [maxHeaps]int
	for _, other := range rs.epochs {
		for r := range other.all() {
			if used[r.heap]++; other != ep {
				used[r.heap]++
			}
		}
	}
	for _, r := range rs.traces.routes {
		used[r.heap] += 2
	}
	for _, t := range rs.tenants.of {
		used[t.heap] += 2
	}
	heaps, best := &rs.slabs.idle.heaps, uint8(1)
	for heap := uint8(1); heap < spentHeap; heap++ {
		if used[heap] < used[best] || used[heap] == used[best] && heaps[heap].count < heaps[best].count {
			best = heap
		}
	}
	return best
}

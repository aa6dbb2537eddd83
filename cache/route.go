package cache

import (
	"math"
	"time"

	"rankfs/cache/ahead"
	"rankfs/cache/trace"
)

const (
	unknown = 0
	never   = vague - 1
	vague   = 1 << 31 // the mark

	// A graph is believed until it was wrong a few times, and then again when it was
	// right for as many opens as the series has steps. So a reader that goes elsewhere
	// costs a few batches, also one that comes by what was learnt now and then.
	trustAtFirst = 8
	maxTrust     = 16
	wrongCosts   = 2

	// maxRouted bounds the steps that are followed, of all readers: 16 MiB.
	maxRouted = 1 << 20
)

func newRoute(s *Series, rank uint64, g *trace.Graph, now time.Time) *route {
	steps := s.Steps
	r := &route{
		reader: reader{rank: rank, Cursor: ahead.Cursor{Pos: 1, Scan: 1, Run: trusted + 1}, stray: none, activeSpan: activeSpan{now, now}}, series: s, graph: g,
		opened: make([]uint32, steps), due: make([]uint32, steps), steps: make([]uint32, 2*steps), trust: trustAtFirst,
	}
	r.route = r
	return r
}

// opens notes the next open.
func (r *route) opens(step uint64, now time.Time) {
	if r.Pos == never { // of more opens than are counted
		clear(r.opened)
		clear(r.due)
		r.Pos, r.Scan = 1, 1
	}
	at := uint32(r.Pos)
	r.judge(step, at)
	before := uint64(0)
	if was := r.opened[step]; was > 0 {
		before = uint64(at - was)
	}
	r.opened[step], r.due[step] = at, unknown
	if after, sure, known := r.graph.After(step, r.series.Steps, before); known {
		r.expect(step, uint32(min(float64(at)+math.Round(after), never)), sure)
	}
	if r.Pos > 1 {
		r.Took(now.Sub(r.seen).Seconds())
		r.tempo.add(now.Sub(r.seen))
	}
	r.Open(r.Pos)
	r.seen = now
}

// expect notes when a step will be opened again.
func (r *route) expect(step uint64, due uint32, sure bool) {
	if !sure {
		r.due[step] = due | vague
		return
	}
	r.due[step] = due
	place := &r.steps[uint64(due)%uint64(len(r.steps))]
	if other := r.due[*place]; due != never && (other <= uint32(r.Pos) || other >= due) {
		*place = uint32(step)
	}
}

// at is the step that is due at an open, if one is for sure.
func (r *route) at(open uint64) (step uint64, is bool) {
	step = uint64(r.steps[open%uint64(len(r.steps))])
	return step, uint64(r.due[step]) == open
}

// judge compares an open with when it was due.
func (r *route) judge(step uint64, at uint32) {
	switch due := r.due[step]; {
	case due == unknown, due >= vague:
	case due != never && at >= due-min(due, r.slack(step)) && at <= due+r.slack(step):
		r.trust = min(r.trust+1, maxTrust)
	case r.trust <= wrongCosts:
		r.trust = -len(r.due)
	default:
		r.trust -= wrongCosts
	}
}

// slack is by how many opens a step may come sooner or later than it is due.
func (r *route) slack(step uint64) uint32 {
	return max(2, (r.due[step]&^vague-r.opened[step])/8, uint32(r.series.Steps/16))
}

// comesTo says at which open r comes to the batch of k, which may be never. It is
// not known of what is long overdue.
func (r *route) comesTo(k Key) (at uint64, known bool) {
	if r.trust <= 0 {
		return 0, false
	}
	rank, step, is := r.series.Find(k)
	if !is || rank != r.rank || step >= uint64(len(r.due)) {
		return 0, false
	}
	switch due := r.due[step] &^ vague; {
	case due == unknown:
		return 0, false
	case due == never:
		return never, true
	default:
		return uint64(due), uint64(due)+uint64(r.slack(step)) >= r.Pos
	}
}

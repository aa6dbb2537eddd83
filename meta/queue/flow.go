package queue

import "time"

// flow decides which node does which of the free units, and how many each worker
// does, and keeps the schedule while units are taken from it.
//
// A schedule is a maximal flow from groups of units through their edges to nodes,
// of which none gets more than the quotas of its workers come to. Quotas are
// such that all end at once (share). What does not fit is loose: it will be
// read from afar by a worker that has quota left. A schedule changes little from one to
// the next, so each begins with the one before it: nodes give up what is above
// their new quota, the others reach for more along augmenting paths.
//
// Schedules are made anew because estimates are poor: without that, flow is twice
// as slow as probability where speeds drift. A worker that the schedule has nothing
// for waits, since others would be done with what is left sooner.
type flow struct {
	*pool
	*crew
	assigned []int32 // by edge: units of its group that its node is to do
	placed   []int32 // by group: sum of assigned over its edges
	slack    []int32 // groups with more free units than placed ones
	at       []int32 // by group: its index in slack, or -1
	load     []int   // by node: sum of assigned over its edges
	spare    []int   // by node: loose units that it holds
	limit    []int   // by node: sum of its workers' quotas

	made  uint64        // schedules so far
	when  time.Duration // of the last one
	asked int           // units taken since then
	due   bool          // something happened that the schedule did not foresee

	bids   []bid
	search search
}

func newFlow(p *pool, c *crew) *flow {
	f := &flow{pool: p, crew: c, due: true}
	f.assigned = make([]int32, len(p.edges))
	f.placed = make([]int32, len(p.groups))
	f.at = make([]int32, len(p.groups))
	f.grow()
	for g := range f.at {
		f.at[g] = -1
	}
	for _, g := range p.live {
		f.loosen(g, int(p.groups[g].free))
	}
	return f
}

func (f *flow) schedules() uint64 { return f.made }

func (f *flow) pick(now time.Duration, w *worker) (int, time.Duration, bool) {
	f.grow()
	rest := max(time.Duration(f.usual()/4), time.Millisecond)
	if f.ripe(w, now-f.when >= rest) {
		f.schedule(now)
	}
	if w.quota > 0 || w.fresh && f.plenty() {
		w.quota = max(0, w.quota-1)
		return f.choose(w), 0, true
	}
	return 0, now + rest, false
}

func (f *flow) grow() {
	for len(f.load) < len(f.pool.nodes) {
		f.load = append(f.load, 0)
		f.spare = append(f.spare, 0)
		f.limit = append(f.limit, 0)
	}
}

// ripe says whether it is time for another schedule: every worker has asked once,
// on the mean, or w has done its part and either enough others have asked or
// there was time for speeds to show.
func (f *flow) ripe(w *worker, rested bool) bool {
	m := len(f.workers)
	switch {
	case f.due || f.asked >= m:
		return true
	case w.quota > 0 || w.fresh && f.plenty():
		return false
	}
	return f.asked >= max(1, m/8) || rested
}

// plenty reports that a unit more or less for one worker does not matter, so that a
// thousand workers that join at once need not wait for a thousand schedules.
func (f *flow) plenty() bool {
	return f.free >= 2*len(f.workers)
}

// choose names a unit for w: one that its node holds, as long as there is one. Of
// these it takes what is assigned to the node, or for none, before what is assigned
// to another: that one's schedule then has a loose unit in its place.
func (f *flow) choose(w *worker) int {
	local := f.pool.nodes[w.node].live
	switch {
	case f.load[w.node] > 0:
		for i := len(local) - 1; i >= 0; i-- {
			if f.assigned[local[i]] > 0 {
				return f.next(f.edges[local[i]].group)
			}
		}
	case f.spare[w.node] > 0:
		return f.next(f.edges[f.someLoose(int32(w.node))].group)
	case len(local) > 0:
		return f.next(f.edges[local[len(local)-1]].group)
	case len(f.slack) > 0:
		return f.next(f.slack[len(f.slack)-1])
	}
	return f.next(f.live[len(f.live)-1])
}

func (f *flow) took(unit, node int) {
	f.grow()
	f.asked++
	g := f.group[unit]
	f.loosen(g, -1)
	if e := f.edgeTo(g, node); e >= 0 && f.assigned[e] > 0 {
		f.place(e, -1)
	} else if f.loose(g) < 0 {
		f.place(f.someAssigned(g), -1)
	}
}

// someAssigned is an edge of a group by which some of it is assigned.
func (f *flow) someAssigned(g int32) int32 {
	e := f.groups[g].edge
	for f.assigned[e] == 0 {
		e++
	}
	return e
}

func (f *flow) back(unit int) {
	f.grow()
	f.loosen(f.group[unit], 1)
	f.due = true
}

func (f *flow) left() { f.due = true }

package queue

import "time"

// flow decides which node does which of the free units, and how many each reader
// does, and keeps the schedule while units are taken from it.
//
// A schedule is a maximal flow from groups of units through their edges to nodes,
// of which none gets more than the quotas of its readers come to. Quotas are
// such that all end at once (share). What does not fit is loose: it will be
// read from afar by a reader that has quota left. A schedule changes little from one to
// the next, so each begins with the one before it: nodes give up what is above
// their new quota, the others reach for more along augmenting paths.
//
// Schedules are made anew because estimates are poor: without that, flow is twice
// as slow as probability where speeds drift. A reader that the schedule has nothing
// for waits, since others would be done with what is left sooner.
type flow struct {
	assignment
	*readers
	limit []int // by node: sum of its readers' quotas

	made  uint64        // schedules so far
	when  time.Duration // of the last one
	asked int           // units taken since then
	due   bool          // something happened that the schedule did not foresee

	bids   []bid
	search search
}

func newFlow(p *freeUnits, c *readers) *flow {
	f := &flow{assignment: newAssignment(p), readers: c, due: true}
	f.grow()
	return f
}

func (f *flow) schedules() uint64 { return f.made }

func (f *flow) grow() {
	f.assignment.grow()
	for len(f.limit) < len(f.freeUnits.nodes) {
		f.limit = append(f.limit, 0)
	}
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

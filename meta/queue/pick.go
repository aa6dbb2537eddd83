package queue

import "time"

func (f *flow) pick(now time.Duration, w *reader) (int, time.Duration, bool) {
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

// ripe says whether it is time for another schedule: every reader has asked once,
// on the mean, or w has done its part and either enough others have asked or
// there was time for speeds to show.
func (f *flow) ripe(w *reader, rested bool) bool {
	m := len(f.byID)
	switch {
	case f.due || f.asked >= m:
		return true
	case w.quota > 0 || w.fresh && f.plenty():
		return false
	}
	return f.asked >= max(1, m/8) || rested
}

// plenty reports that a unit more or less for one reader does not matter, so that a
// thousand readers that join at once need not wait for a thousand schedules.
func (f *flow) plenty() bool {
	return f.free >= 2*len(f.byID)
}

// choose names a unit for w: one that its node holds, as long as there is one. Of
// these it takes what is assigned to the node, or for none, before what is assigned
// to another: that one's schedule then has a loose unit in its place.
func (f *flow) choose(w *reader) int {
	local := f.freeUnits.nodes[w.node].live
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

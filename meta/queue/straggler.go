package queue

import "time"

// second names a unit that another reader is at work on and that w would finish earlier,
// by the largest margin; or it says when there may be one. No unit has three readers at
// once, nor the same one twice.
func (s *Scheduler) second(now time.Duration, w *reader) (unit int, until time.Duration, ok bool) {
	until = now + max(time.Duration(s.readers.usual()), time.Millisecond)
	idle := s.readers.idle(now, w)
	var most time.Duration
	for _, other := range s.readers.byID {
		for i, l := range other.leases {
			if other == w || s.units.state[l.unit] != 1 || s.aside[l.unit] {
				continue
			}
			ends := idle + s.readers.takes(w, !s.units.holds(w.node, l.unit))
			margin := s.readers.ends(now, other, i) - ends
			if margin > most {
				unit, most, ok = l.unit, margin, true
			}
			// The other's estimate moves on twice as fast as time once it is overdue.
			until = min(until, now+max(-margin, time.Millisecond))
		}
	}
	return unit, until, ok
}

package queue

import "slices"

// A unit that was returned goes last. It may be what ended its reader, and would
// end the next ones: by then the others' work is done. And readers that all end
// at once, because their program is wrong, come back to other units, so that
// none of these is returned often.

// Postpone says that a unit was returned before this scheduler was made.
func (s *Scheduler) Postpone(unit int) {
	if s.units.state[unit] == stateFree && !slices.Contains(s.later, unit) {
		s.take(unit, -1)
		s.later = append(s.later, unit)
	}
}

// recall makes the units free that were returned. The last of them goes out first.
func (s *Scheduler) recall() {
	for _, unit := range slices.Backward(s.later) {
		s.put(unit)
	}
	s.later = s.later[:0]
}

// SetAside says that a unit is to be offered to no reader any more. A reader that has it
// may still finish it; until then it is not over. It reports whether that is news.
func (s *Scheduler) SetAside(unit int) bool {
	switch s.units.state[unit] {
	case stateDone:
		return false
	case stateFree:
		s.close(unit, nil)
		return true
	}
	if s.aside[unit] {
		return false
	}
	s.aside[unit] = true
	for _, w := range s.readers.byID {
		if w.offer == unit {
			s.withdraw(w)
		}
	}
	return true
}

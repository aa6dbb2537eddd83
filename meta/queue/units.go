package queue

import "slices"

// What becomes of a unit: it is taken, given to readers, put back, and done.

// close makes a unit done by one reader, and lost for all others that have it.
func (s *Scheduler) close(unit int, by *reader) {
	others := int(s.units.state[unit])
	if others == 0 {
		s.take(unit, -1)
	}
	if by != nil && by.leaseOf(unit) >= 0 {
		others--
	}
	s.end(unit)
	if others > 0 {
		s.lose(unit)
	}
}

// end makes a unit done that is not free.
func (s *Scheduler) end(unit int) {
	s.units.finish(unit)
	delete(s.aside, unit)
	if s.units.undone == 0 {
		s.changes++
	}
}

// lose withdraws a unit that is done from all readers that have it.
func (s *Scheduler) lose(unit int) {
	for _, w := range s.readers.byID {
		if w.offer == unit {
			s.withdraw(w)
		}
		if i := w.leaseOf(unit); i >= 0 {
			w.leases[i].lost = true
		}
	}
}

func (s *Scheduler) take(unit, node int) {
	if s.forgetLater(unit) {
		return // it is not free
	}
	s.units.take(unit)
	s.chooser.took(unit, node)
}

func (s *Scheduler) forgetLater(unit int) bool {
	i := slices.Index(s.later, unit)
	if i < 0 {
		return false
	}
	s.later = slices.Delete(s.later, i, i+1)
	return true
}

func (s *Scheduler) put(unit int) {
	s.units.put(unit)
	s.chooser.back(unit)
}

func (s *Scheduler) give(unit int, w *reader) {
	if s.units.state[unit] == stateFree {
		s.take(unit, w.node)
	}
	s.units.state[unit]++
}

func (s *Scheduler) drop(w *reader, i int) {
	unit := w.leases[i].unit
	w.leases = slices.Delete(w.leases, i, i+1)
	if s.takeBack(unit) {
		s.later = append(s.later, unit)
	}
}

func (s *Scheduler) withdraw(w *reader) {
	unit := w.offer
	w.offer = -1
	if s.takeBack(unit) {
		s.put(unit)
	}
}

// takeBack takes a unit from a reader, and reports whether it is free now.
func (s *Scheduler) takeBack(unit int) bool {
	if s.units.state[unit] == stateDone {
		return false
	}
	s.units.state[unit]--
	s.changes++
	if s.units.state[unit] != stateFree {
		return false
	}
	if s.aside[unit] {
		s.end(unit)
		return false
	}
	return true
}

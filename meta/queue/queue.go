package queue

import (
	"fmt"
	"slices"
	"time"

	"rankfs/meta"
)

// A Verdict says what a reader should do.
type Verdict uint8

const (
	Take Verdict = iota // the unit
	Wait                // and ask again
	Over                // there will be nothing more
)

// Advice answers Next.
type Advice struct {
	Verdict Verdict
	Unit    int // to take
	// Second: the unit is at work already, and this reader would finish it
	// first. Exactly one of the two may be let finish.
	Second bool
	// Until is when to ask again. To ask as soon as Changes has grown is
	// better; to ask again before either is of no use.
	Until time.Duration
}

// Join adds a reader on a node.
func (s *Scheduler) Join(now time.Duration, id, node int) error {
	if node < 0 || node >= MaxNodes {
		return fmt.Errorf("reader %d on node %d %w: nodes are numbered from 0", id, node, meta.ErrInvalid)
	}
	if _, w := s.readers.find(id); w != nil {
		return fmt.Errorf("reader %d %w: give each descriptor a number of its own", id, meta.ErrExist)
	}
	s.units.grow(node)
	s.readers.join(now, id, node)
	return nil
}

// Leave removes a reader. Its units are free again.
func (s *Scheduler) Leave(id int) {
	i, w := s.readers.find(id)
	if w == nil {
		return
	}
	for len(w.leases) > 0 {
		s.drop(w, 0)
	}
	if w.offer >= 0 {
		s.withdraw(w)
	}
	s.readers.byID = slices.Delete(s.readers.byID, i, i+1)
	s.chooser.left()
	s.changes++
}

// Next says what a reader should do. What it is told to take is kept for it
// until it begins or returns that, asks again, or leaves.
func (s *Scheduler) Next(now time.Duration, id int) (Advice, error) {
	_, w := s.readers.find(id)
	if w == nil {
		return Advice{}, fmt.Errorf("reader %d %w: it must join first", id, meta.ErrNotExist)
	}
	w.seen = now
	s.forgetLost(w)
	if w.offer >= 0 {
		return Advice{Unit: w.offer, Second: s.units.state[w.offer] > 1}, nil
	}
	if s.units.undone == 0 {
		return Advice{Verdict: Over}, nil
	}
	unit, until, ok := s.choose(now, w)
	if !ok {
		return Advice{Verdict: Wait, Until: until}, nil
	}
	w.offer = unit
	s.give(unit, w)
	return Advice{Unit: unit, Second: s.units.state[unit] > 1}, nil
}

func (s *Scheduler) choose(now time.Duration, w *reader) (unit int, until time.Duration, ok bool) {
	if s.units.free > 0 {
		if unit, until, ok = s.chooser.pick(now, w); ok || len(s.later) == 0 {
			return unit, until, ok
		}
	}
	if s.recall(); s.units.free > 0 {
		return s.chooser.pick(now, w)
	}
	return s.second(now, w)
}

// Changes grows whenever a reader that waits could be told something else.
func (s *Scheduler) Changes() uint64 { return s.changes + s.chooser.schedules() }

// Began says that the group agreed on a reader's lease of a unit.
func (s *Scheduler) Began(now time.Duration, id, unit int) {
	_, w := s.readers.find(id)
	if w == nil || s.units.state[unit] == stateDone || w.leaseOf(unit) >= 0 {
		return
	}
	if w.offer == unit {
		w.offer = -1
	} else {
		s.overrule(unit)
		s.give(unit, w)
	}
	w.leases = append(w.leases, lease{unit: unit, since: now, far: !s.units.holds(w.node, unit)})
}

// overrule withdraws an offer of a unit that two readers have already: the group gave it
// to another.
func (s *Scheduler) overrule(unit int) {
	if s.units.state[unit] < 2 {
		return
	}
	for _, w := range s.readers.byID {
		if w.offer == unit {
			s.withdraw(w)
			return
		}
	}
}

// Finished says that a reader has done a unit. Any other reader that had it has lost it,
// and acknowledges that by finishing it, returning it, or asking for more.
func (s *Scheduler) Finished(now time.Duration, id, unit int) {
	_, w := s.readers.find(id)
	if s.units.state[unit] != stateDone {
		s.close(unit, w)
	}
	if w == nil {
		return
	}
	w.seen = now
	if i := w.leaseOf(unit); i >= 0 {
		s.readers.learn(now, w, w.leases[i])
		s.drop(w, i)
		if len(w.leases) > 0 {
			w.leases[0].since = max(w.leases[0].since, now)
		}
	}
}

// Returned says that a reader gives a unit back, or will not take it after all.
func (s *Scheduler) Returned(id, unit int) {
	_, w := s.readers.find(id)
	if w == nil {
		return
	}
	if w.offer == unit {
		s.withdraw(w)
	}
	if i := w.leaseOf(unit); i >= 0 {
		s.drop(w, i)
	}
}

func (s *Scheduler) forgetLost(w *reader) {
	w.leases = slices.DeleteFunc(w.leases, func(l lease) bool { return l.lost })
}

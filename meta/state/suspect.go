package state

import (
	"cmp"
	"slices"
)

// A Suspect is a unit that workers gave back, and that none has finished since. It may
// be the cause of their end.
type Suspect struct {
	Unit int64
	By   []Return // each worker once, the first first
}

// Aside reports whether so many workers gave it back that none is given it any more. A
// worker that still has it may finish it.
func (r Suspect) Aside() bool { return isAside(r.By) }

func isAside(by []Return) bool { return len(by) >= MaxReturns }

// A Return is how a unit came back.
type Return struct {
	Worker string
	Node   string
	Rank   uint64
	At     int64 // time of the cluster
	Cause  Cause
}

// A Cause is why a unit came back.
type Cause string

const (
	Closed  Cause = "closed"  // the worker closed the queue, or ended
	Down    Cause = "down"    // its node was seen down, or began anew
	Removal Cause = "removed" // its node was taken out of the cluster
)

// giveBack releases the unit that w holds and makes it a suspect, unless there are as
// many suspects as there may be: those get finished, or there is no good unit.
func (s *state) giveBack(q *queue, w *worker, cause Cause) {
	unit := w.Unit
	q.release(w)
	if unit < 0 || q.units.has(unit) {
		return
	}
	by, known := q.suspects[unit]
	twice := slices.ContainsFunc(by, func(r Return) bool { return r.Worker == w.ID })
	if isAside(by) || twice || !known && (len(q.suspects) >= MaxSuspects || s.queues().suspects >= MaxAllSuspects) {
		return
	}
	if !known {
		s.queues().suspects++
	}
	// A snapshot may share the array of by, so append must not write to it.
	by = append(slices.Clip(by), Return{Worker: w.ID, Node: w.Node, Rank: w.Rank, At: s.Now, Cause: cause})
	q.suspects[unit] = by
	if isAside(by) {
		q.aside++
	}
}

// forgive makes a unit no suspect any more.
func (s *state) forgive(q *queue, unit int64) {
	by, known := q.suspects[unit]
	if !known {
		return
	}
	delete(q.suspects, unit)
	s.queues().suspects--
	if isAside(by) {
		q.aside--
	}
}

func (s *state) forgiveAll(q *queue) {
	s.queues().suspects -= len(q.suspects)
	q.suspects, q.aside = make(map[int64][]Return), 0
}

// suspected are the suspects, by unit.
func (q *queue) suspected() []Suspect {
	all := make([]Suspect, 0, len(q.suspects))
	for unit, by := range q.suspects {
		all = append(all, Suspect{unit, by})
	}
	slices.SortFunc(all, func(a, b Suspect) int { return cmp.Compare(a.Unit, b.Unit) })
	return all
}

// Suspects are those of a queue, by unit.
func (m *Machine) Suspects(view string) []Suspect {
	s, done := m.read()
	defer done()
	if q, ok := s.queues().get(view); ok {
		return q.suspected()
	}
	return nil
}

// Suspect returns a unit's record as a suspect, if it is one.
func (m *Machine) Suspect(view string, unit int64) (Suspect, bool) {
	s, done := m.read()
	defer done()
	if q, ok := s.queues().get(view); ok && q.suspects[unit] != nil {
		return Suspect{unit, q.suspects[unit]}, true
	}
	return Suspect{}, false
}

// A Fate is what became of a unit.
type Fate uint8

const (
	Undone   Fate = iota // a worker has it, or is yet to get it
	SetAside             // no worker is given it any more
	Done
)

// Fate is what became of a unit of a queue.
func (m *Machine) Fate(view string, unit int64) Fate {
	s, done := m.read()
	defer done()
	q, ok := s.queues().get(view)
	switch {
	case !ok || unit < 0 || unit >= int64(q.Units):
		return Undone
	case q.units.has(unit):
		return Done
	case isAside(q.suspects[unit]):
		return SetAside
	}
	return Undone
}

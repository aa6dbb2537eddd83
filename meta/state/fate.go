package state

// Suspects are the suspects of a queue, by unit.
func (m *Machine) Suspects(view string) []Suspect {
	s, done := m.read()
	defer done()
	if q, ok := s.queues().get(view); ok {
		return q.suspected()
	}
	return nil
}

// Suspect looks up a unit that may be the cause of its readers' end; false if it is none.
func (m *Machine) Suspect(view string, unit int64) (Suspect, bool) {
	s, done := m.read()
	defer done()
	if q, ok := s.queues().get(view); ok && q.suspects[unit] != nil {
		return Suspect{unit, q.suspects[unit]}, true
	}
	return Suspect{}, false
}

// A Fate says whether a unit is done, set aside, or neither.
type Fate uint8

const (
	Undone   Fate = iota // a reader has it, or is yet to get it
	SetAside             // no reader is given it any more
	Done
)

// Fate is the fate of a unit of a queue.
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

package state

import (
	"io"
	"maps"
)

// Read is the machine that a snapshot was made of. Any damage is ErrCorrupt.
func Read(r io.Reader) (*Machine, error) {
	m := New()
	if err := m.Restore(r); err != nil {
		return nil, err
	}
	return m, nil
}

// Kinds has an empty command of each kind.
func Kinds() (all []Command) {
	for _, k := range known.kinds {
		all = append(all, k.blank())
	}
	return all
}

// Applied is the index of the last command in it.
func (s *Snapshot) Applied() uint64 { return s.state.Applied }

// Settings are all that are set.
func (m *Machine) Settings() map[string]string {
	s, done := m.read()
	defer done()
	return maps.Clone(s.settings().m)
}

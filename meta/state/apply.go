package state

import (
	"fmt"

	"rankfs/meta"
)

// Apply applies the command at that index of the log and says what came of it.
// An error is as much a part of the outcome as a result: every machine returns
// the same, and has changed nothing.
func (m *Machine) Apply(index uint64, data []byte) (Result, error) {
	c, err := decodeUpTo(m.speaks, data)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.poison != nil {
		return Result{}, m.mu.poison
	}
	if err != nil {
		m.mu.poison = fmt.Errorf("index %d of the cluster's log: %w", index, err)
		return Result{}, m.mu.poison
	}
	s := m.mu.state
	if index <= s.Applied {
		return Result{}, meta.Worded(meta.ErrInvalid, "index %d of the cluster's log cannot come after %d", index, s.Applied)
	}
	s.Applied = index
	if err := c.check(); err != nil {
		return Result{}, err
	}
	if err := s.mayCome(c); err != nil {
		return Result{}, err
	}
	s.advance(c.entry().At)
	result, err := c.apply(s)
	m.tell()
	return result, err
}

// Decode reads a command that this machine understands. A leader decodes the commands of
// other nodes before they go into the log: one that cannot be decoded there would stop
// every machine.
func (m *Machine) Decode(data []byte) (Command, error) { return decodeUpTo(m.speaks, data) }

// mayCome says why a command is not for this state: it is of another version, or
// from a node that may not send it. A leader may have encoded it before it knew that
// the cluster has gone over; so it is sent again.
func (s *state) mayCome(c Command) error {
	if _, ok := c.(*Found); ok && s.Cluster == (Cluster{}) {
		return nil
	}
	said := versionSaid(c)
	if _, ok := c.(*Upgrade); !ok && said != s.version() {
		return fmt.Errorf("command of version %d %w: the cluster takes those of version %d; try again", said, meta.ErrUnavailable, s.version())
	}
	if said < Signed {
		return nil
	}
	return s.allows(c)
}

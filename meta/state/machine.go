package state

import (
	"fmt"
	"sync"

	"rankfs/meta"
)

// A Machine is the state of a cluster as one node knows it. Its methods may be
// called concurrently; Apply and Restore wait for each other.
//
// What reads return is the caller's, except the bytes of a dataset's record and the
// runs of a plan, which are shared and must not be changed.
type Machine struct {
	speaks int // the newest version that it understands
	mu     struct {
		sync.RWMutex
		state   *state
		poison  error  // why nothing is applied any more
		cluster signal // of everything but queues
		queues  signal
	}
}

// New is the machine that no command was applied to.
func New() *Machine { return Speaking(Version) }

// Speaking is New for a machine that understands no newer version than that: one
// of an older release.
func Speaking(version int) *Machine {
	m := &Machine{speaks: version}
	m.mu.state = newState()
	return m
}

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
	s.advance(c.at())
	result, err := c.apply(s)
	m.tell()
	return result, err
}

// tell wakes the goroutines that wait for what has changed.
func (m *Machine) tell() {
	s := m.mu.state
	if s.changed.cluster {
		m.mu.cluster.fire()
	}
	if s.changed.queues {
		m.mu.queues.fire()
	}
	s.changed.cluster, s.changed.queues = false, false
}

// Err says why the machine applies nothing any more, if so. Reads go on.
func (m *Machine) Err() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.mu.poison
}

// Changed is closed at the next change of anything but queues. Ask for it
// before reading what is to be followed.
func (m *Machine) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.cluster.next()
}

// QueuesChanged is closed at the next change of any queue.
func (m *Machine) QueuesChanged() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.queues.next()
}

// A signal is a channel that is made when a goroutine is about to wait for it.
type signal struct{ c chan struct{} }

func (s *signal) next() <-chan struct{} {
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *signal) fire() {
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

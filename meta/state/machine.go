package state

import "sync"

// A Machine is the state of a cluster as one node knows it. Its methods may be
// called concurrently. All of the state is changed under its lock, by Apply and Restore one
// after the other, and read by many at a time; each section has its reads in its own file.
//
// The results of reads are the caller's, except the bytes of a dataset's registration and the
// runs of a plan, which are shared and must not be changed.
type Machine struct {
	speaks int // the newest version that it understands
	mu     struct {
		sync.RWMutex
		state   *state
		poison  error  // why nothing is applied any more
		any     signal // of everything but queues
		cluster signal // of that, but for the files of the pool
		queues  signal
	}
}

// read begins every read: it gives the state, and what ends the read.
func (m *Machine) read() (*state, func()) {
	m.mu.RLock()
	return m.mu.state, m.mu.RUnlock
}

// tell wakes the goroutines that wait for what has changed.
func (m *Machine) tell() {
	s := m.mu.state
	if s.changed.cluster {
		m.mu.cluster.fire()
	}
	if s.changed.cluster || s.changed.files {
		m.mu.any.fire()
	}
	if s.changed.queues {
		m.mu.queues.fire()
	}
	s.changed.cluster, s.changed.files, s.changed.queues = false, false, false
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
	return m.mu.any.next()
}

// ClusterChanged is Changed, but not for maps and blobs of the shuffle pool that come and
// go, of which there are thousands in a second.
func (m *Machine) ClusterChanged() <-chan struct{} {
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

// Speaks is the newest version of commands that the machine understands.
func (m *Machine) Speaks() int { return m.speaks }

// Version is the version of the commands that the machine takes, as far as it has
// come.
func (m *Machine) Version() int {
	s, done := m.read()
	defer done()
	return s.version()
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

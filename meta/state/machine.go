package state

// A Machine is the state of a cluster as one node knows it. Its methods may be
// called concurrently; Apply and Restore wait for each other.
//
// The results of reads are the caller's, except the bytes of a dataset's registration and the
// runs of a plan, which are shared and must not be changed.
type Machine struct {
	speaks int // the newest version that it understands
	*locked

	// Its reads, by section.
	tokenReads
	nodeReads
	datasetReads
	claimReads
	planReads
	queueReads
	settingReads
	poolReads
}

// Speaking is New for a machine that understands no newer version than that: one
// of an older release.
func Speaking(version int) *Machine {
	l := new(locked)
	l.mu.state = newState()
	return &Machine{
		speaks: version, locked: l,
		tokenReads: tokenReads{l}, nodeReads: nodeReads{l}, datasetReads: datasetReads{l}, claimReads: claimReads{l},
		planReads: planReads{l}, queueReads: queueReads{l}, settingReads: settingReads{l}, poolReads: poolReads{l},
	}
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
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.mu.state.version()
}

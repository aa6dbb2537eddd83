package state

import "sync"

// locked is the state of a machine, under its lock: all of it is changed under the lock,
// and read by many at a time.
type locked struct {
	mu struct {
		sync.RWMutex
		state   *state
		poison  error  // why nothing is applied any more
		any     signal // of everything but queues
		cluster signal // of that, but for the files of the pool
		queues  signal
	}
}

// read begins every read: it gives the state, and what ends the read.
func (l *locked) read() (*state, func()) {
	l.mu.RLock()
	return l.mu.state, l.mu.RUnlock
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

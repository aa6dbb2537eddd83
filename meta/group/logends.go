package group

import "sync"

// logEnds are the ends of this node's log, and of what its machine has executed of it:
// what a leader has to bring to its followers. The lock guards all of it.
type logEnds struct {
	mu struct {
		sync.Mutex
		stored, executed uint64
		more             chan struct{} // closed by what comes next; nil if none waits
	}
}

// stores notes that the log ends there, which may be before where it ended.
func (n *logEnds) stores(index uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.stored = index
	n.tell()
}

// executes notes that the machine has come so far.
func (n *logEnds) executes(index uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.executed = index
	n.tell()
}

// again wakes the goroutines that wait, though there is no more.
func (n *logEnds) again() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell()
}

// tell wakes the goroutines that wait. The lock is held.
func (n *logEnds) tell() {
	if n.mu.more != nil {
		close(n.mu.more)
		n.mu.more = nil
	}
}

// after is closed when there is more than what was stored and executed up to there; nil if
// there is already.
func (n *logEnds) after(stored, executed uint64) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.stored > stored || n.mu.executed > executed {
		return nil
	}
	return n.wait()
}

// next is closed when something was stored or executed. Ask for it before looking at the
// ends.
func (n *logEnds) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wait()
}

// wait is closed by what comes next. The lock is held.
func (n *logEnds) wait() <-chan struct{} {
	if n.mu.more == nil {
		n.mu.more = make(chan struct{})
	}
	return n.mu.more
}

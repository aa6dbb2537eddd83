package namenode

import "sync"

// A trouble is why something does not go, as it was last seen; nil while it goes. The lock
// guards the cause.
type trouble struct {
	mu struct {
		sync.Mutex
		last error
	}
}

func (t *trouble) cause() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.last
}

// set notes the cause, nil at the end, and reports whether there was none.
func (t *trouble) set(cause error) (begins bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	begins = t.mu.last == nil && cause != nil
	t.mu.last = cause
	return begins
}

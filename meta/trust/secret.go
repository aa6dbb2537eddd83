package trust

import (
	"crypto/ed25519"
	"sync"

	"rankfs/meta"
)

var errKeyless = meta.Worded(meta.ErrNotExist, "key of the authority does not exist on this node: ask a voter")

// A secret is a private key that can be forgotten: its users keep no copy. The lock is
// held for reading while the key is used, so that none is wiped in use.
type secret struct {
	mu struct {
		sync.RWMutex
		key ed25519.PrivateKey // nil: there is none
	}
}

func (s *secret) set(key ed25519.PrivateKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.mu.key)
	s.mu.key = key
}

// wipe forgets the key, and leaves nothing of it in memory.
func (s *secret) wipe() { s.set(nil) }

func (s *secret) known() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mu.key != nil
}

// use has f compute something with the key.
func (s *secret) use(f func(key ed25519.PrivateKey) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.mu.key == nil {
		return errKeyless
	}
	return f(s.mu.key)
}

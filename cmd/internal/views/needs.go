package views

import (
	"sync"

	"rankfs/fetch/batch"
)

type needKey struct {
	plan  [16]byte
	ranks uint64
}

// needs remembers what ranks need, which listings ask for again and again. Its lock
// guards the map.
type needs struct {
	mu struct {
		sync.Mutex
		known map[needKey]batch.Need // no more than maxNeeds
	}
}

func (c *needs) get(k needKey, look func() batch.Need) batch.Need {
	c.mu.Lock()
	found, ok := c.mu.known[k]
	c.mu.Unlock()
	if ok {
		return found
	}
	found = look()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.known == nil || len(c.mu.known) >= maxNeeds {
		c.mu.known = make(map[needKey]batch.Need)
	}
	c.mu.known[k] = found
	return found
}

const maxNeeds = 4096

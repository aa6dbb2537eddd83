package pool

import (
	"errors"
	"fmt"
	"sync"

	"rankfs/meta"
)

// failures are the nodes that did not give what a part has asked them for, and why. The lock
// guards them.
type failures struct {
	mu   sync.Mutex
	of   map[string]error
	slow *slowNodes
}

// A demand is a request to a node for maps. It is in a hurry if other nodes have them too.
type demand struct {
	node  string
	maps  []int
	hurry bool
}

// failures are the failures of a column that has asked no node yet.
func (p *column) failures() *failures {
	f := &failures{of: make(map[string]error), slow: &p.pool.slow}
	if p.files == nil {
		f.of[p.pool.config.Cluster.Self()] = errKeepsNothing
	}
	return f
}

// add notes what a demand has failed with. A node that was in a hurry may be slow: it is asked
// again, and has time then, if no other is left.
func (f *failures) add(s demand, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.hurry && (errors.Is(err, meta.ErrUnavailable) || errors.Is(err, meta.ErrBusy)) {
		f.slow.add(s.node)
		return
	}
	f.of[s.node] = fmt.Errorf("node %s: %w", s.node, err)
}

package pool

import (
	"maps"
	"sync"

	"rankfs/meta/state"
	"rankfs/shuffle/placement"
)

// A spread counts the copies of what this node writes that each node was given, by the stages of a
// job. The lock guards that.
type spread struct {
	mu struct {
		sync.Mutex
		given map[uint64]map[string]int
	}
}

// CopyNodes choose the nodes that are to have the copies of an attempt.
type copyNodes struct {
	key    uint64 // of the stage
	writer string
	copies int
	given  map[string]int // before; nil: it is of no stage yet
}

// next are the nodes for the copies of one more attempt, which it counts as given.
func (all *spread) next(job string, g state.PoolStage, writer string, nodes []placement.Node) copyNodes {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.mu.given == nil {
		all.mu.given = make(map[uint64]map[string]int)
	}
	given := all.mu.given[g.Number]
	if given == nil {
		given = make(map[string]int)
		all.mu.given[g.Number] = given
	}
	c := copyNodes{placement.Key(job, g.Name, 0), writer, g.Spec.Copies, maps.Clone(given)}
	for _, id := range c.choose(nodes) {
		given[id]++
	}
	return c
}

// forget forgets a stage that is no more.
func (all *spread) forget(stage uint64) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.mu.given, stage)
}

// choose chooses of some nodes.
func (c copyNodes) choose(nodes []placement.Node) []string {
	return placement.InTurn(c.key, c.copies, c.writer, c.given, nodes)
}

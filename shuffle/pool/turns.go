package pool

import (
	"maps"
	"sync"

	"rankfs/meta/state"
	"rankfs/shuffle/placement"
)

// turns are how many copies of what this node writes it has chosen each node for, by the stages
// of a job. The lock guards that.
type turns struct {
	mu struct {
		sync.Mutex
		given map[uint64]map[string]int
	}
}

// A turn is who is to have the copies of an attempt.
type turn struct {
	key    uint64 // of the stage
	writer string
	copies int
	given  map[string]int // before; nil: it is of no stage yet
}

// next is the turn of one more attempt, of which the nodes it chooses first are counted as given.
func (all *turns) next(job string, g state.PoolStage, writer string, nodes []placement.Node) turn {
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
	t := turn{placement.Key(job, g.Name, 0), writer, g.Spec.Copies, maps.Clone(given)}
	for _, id := range t.choose(nodes) {
		given[id]++
	}
	return t
}

// forget forgets a stage that is no more.
func (all *turns) forget(stage uint64) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.mu.given, stage)
}

// choose chooses of some nodes.
func (t turn) choose(nodes []placement.Node) []string {
	return placement.InTurn(t.key, t.copies, t.writer, t.given, nodes)
}

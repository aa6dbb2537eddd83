package pool

import (
	"iter"
	"slices"

	"rankfs/meta/state"
)

// A node takes no more copies when less than one part in minFree of what it has for the
// pool is free, and some again when it is twice as much.
const minFree = 16

// Room is the number of bytes that this node has for the pool, in memory and on its disk, and whether
// it takes no copies for now. A disk that was left alone after an error has nothing free. A guest
// has none.
func (p *Pool) Room(wasFull bool) (bytes int64, full bool) {
	if p.config.Guest {
		return 0, false
	}
	bytes = p.config.RAM
	free := p.budget.Free()
	if p.local.disk != nil {
		_, most := p.local.disk.Room()
		bytes += most
		free += p.local.disk.Free()
	}
	least := bytes / minFree
	if wasFull {
		least *= 2
	}
	return bytes, free < least
}

// JobsAndMaps are those that the cluster has.
type JobsAndMaps interface {
	Jobs
	Committed
}

// Leaving counts the maps on a node of which other nodes have too few copies as yet, and says
// whether one of those has room for any of it, as far as the cluster knows.
func Leaving(s JobsAndMaps, nodes []state.Node, node string) (maps int, bytes int64, fits bool) {
	active, hosts := activeNodes(NodesUp(nodes, "")), max(1, Hosts(nodes))
	delete(active, node)
	free := freeOf(s, nodes)
	for g, c := range commitsOf(s) {
		if !slices.Contains(c.Nodes, node) || len(those(c.Nodes, active)) >= min(g.Spec.Copies, hosts) {
			continue
		}
		maps++
		bytes += c.Size
		for id, has := range free {
			fits = fits || has >= c.Size && !slices.Contains(c.Nodes, id)
		}
	}
	return maps, bytes, fits
}

// freeOf is the room left, at most, of nodes that take copies, or will when they are up.
func freeOf(s JobsAndMaps, nodes []state.Node) map[string]int64 {
	free := make(map[string]int64)
	for _, n := range nodes {
		if n.Pool > 0 && !n.Drained && !(n.Up && n.PoolFull) {
			free[n.ID] = n.Pool
		}
	}
	for _, c := range commitsOf(s) {
		for _, id := range c.Nodes {
			if _, ok := free[id]; ok {
				free[id] -= c.Size
			}
		}
	}
	return free
}

// commitsOf are all maps of all stages.
func commitsOf(s JobsAndMaps) iter.Seq2[state.PoolStage, state.Commit] {
	return func(yield func(state.PoolStage, state.Commit) bool) {
		for _, j := range s.PoolJobs() {
			for _, g := range s.Stages(j.Number) {
				for _, c := range s.Commits(g.Number).All() {
					if !yield(g, c) {
						return
					}
				}
			}
		}
	}
}

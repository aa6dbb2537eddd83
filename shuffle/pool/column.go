package pool

import (
	"context"
	"slices"
	"sync"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/mapfiles"
	"rankfs/shuffle/merging"
)

// The columns are what all columns of this node have: whom they ask for pieces, and what was
// learned of nodes and of parts.
type columns struct {
	*agreed
	copies *copies
	peers  peers
	merges *merging.Merges

	measured measured
	slow     slowNodes
}

// A column is a piece of each map: what maps have of a part, or in place of that a slice of each,
// the samples of these, or all of a map. Pieces come from the nodes that have copies. The lock
// guards what is known again of some maps.
type column struct {
	terms
	merging.Pieces
	Whole bool   // all parts, of one map
	next  uint64 // columns that come after this one, and are parts as it is
	all   *columns
	files *files // of this node; nil if it keeps nothing

	again struct {
		sync.Mutex
		of map[int]state.Commit // those of which a node has given up a copy since
	}
}

// gaveUp looks again which nodes have copies of maps, and reports whether a node has given one up.
func (p *column) gaveUp(ctx context.Context, node string, maps []int) (gave bool) {
	if p.all.Know(ctx) != nil {
		return false
	}
	p.again.Lock()
	defer p.again.Unlock()
	if p.again.of == nil {
		p.again.of = make(map[int]state.Commit)
	}
	for _, i := range maps {
		was := p.Maps.At(i)
		c, ok := p.all.config.State.Commit(p.Stage, was.Map)
		if ok && c.Sum == was.Sum {
			gave = gave || !slices.Contains(c.Nodes, node)
			p.again.of[i] = c
		}
	}
	return gave
}

// now are some maps as this node knew them last.
func (p *column) now(some []int) []state.Commit {
	p.again.Lock()
	defer p.again.Unlock()
	all := make([]state.Commit, len(some))
	for k, i := range some {
		all[k] = p.last(i)
	}
	return all
}

// at is a map as this node knew it last.
func (p *column) at(i int) state.Commit {
	p.again.Lock()
	defer p.again.Unlock()
	return p.last(i)
}

// last is the commit of a map as it is known now. The lock is held.
func (p *column) last(i int) state.Commit {
	if c, ok := p.again.of[i]; ok {
		return c
	}
	return p.Maps.At(i)
}

// own reports whether a node is this one.
func (p *column) own(node string) bool { return node == p.all.config.Cluster.Self() }

// of is what is wanted of each map.
func (p *column) of() mapfiles.Part {
	return mapfiles.Part{Stage: p.Stage, Number: p.Number, Whole: p.Whole}
}

// name is the name of the part which is these pieces. The maps of a sealed stage are those that they
// are, so that the first, the last and how many there are say which.
func (p *column) name() partName {
	kind, first, last, n := uint64(0), uint64(0), uint64(0), p.Maps.Len()
	if p.Whole {
		kind = 1
	}
	if n > 0 {
		first, last = p.Maps.At(0).Map, p.Maps.At(n-1).Map
	}
	return partName{p.Stage, p.Generation, p.Number, kind, first, last, uint64(n)}
}

// request asks for some maps of a demand.
func (p *column) request(maps []int, hurry bool) PieceRequest {
	return PieceRequest{terms: p.terms, Part: p.Number, Whole: p.Whole, Maps: p.now(maps), hurry: hurry}
}

func lost(c state.Commit) error {
	return meta.Worded(meta.ErrLost, "map %d has no copy left; commit the same bytes again, or begin the stage anew with: rankfs shuffle reset JOB/STAGE", c.Map)
}

package gathering

import (
	"context"
	"slices"
	"sync"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/merging"
	"rankfs/shuffle/pieces"
)

// A Cluster is what this node knows of the others, and of maps. It is called concurrently.
type Cluster interface {
	Self() string
	// Up are the nodes that are.
	Up() map[string]bool
	// Commit is the map of a stage that has won, as far as this node knows it.
	Commit(stage, number uint64) (state.Commit, bool)
	// Know waits until this node knows what the cluster knows.
	Know(ctx context.Context) error
}

// PartsAhead is how many parts are measured at a time, if no other node has a map of them. In a
// table their rows stand beside each other: of eight they are 144 bytes.
const PartsAhead = 8

// Nodes have pieces of maps: this one, and others that are asked. They are called concurrently.
type Nodes interface {
	// Measure says what the pieces are of so many parts, PartsAhead at most, from that of the request
	// on. Other nodes are asked for one alone.
	Measure(ctx context.Context, node string, r Request, parts int) ([][]pieces.Piece, error)
	// Fetch writes pieces of maps, which are these, one after the other into dst. They are right.
	Fetch(ctx context.Context, node string, r Request, is []pieces.Piece, dst []byte) error
	// Portion writes bytes of the piece of one map into dst, from one on. They are not checked.
	Portion(ctx context.Context, node string, r Request, is pieces.Piece, off int64, dst []byte) error
	// Look has a node look whether its copy of a piece of one map is right.
	Look(ctx context.Context, node string, r Request) error
}

// Columns are what all columns of this node have: the cluster, and what was learned of nodes and
// of parts.
type Columns struct {
	Cluster
	Measured Measured
	slow     slowNodes
}

// New makes the columns of a node.
func New(c Cluster) *Columns { return &Columns{Cluster: c} }

// A Column is a piece of each map: what maps have of a part, or in place of that a slice of each,
// the samples of these, or all of a map. Pieces come from the nodes that have copies. The lock
// guards again: the latest commits of maps of which a node has given up its copy.
type Column struct {
	Terms
	merging.Pieces
	Whole  bool   // all parts, of one map
	Next   uint64 // how many of the parts after this one are wanted, too
	All    *Columns
	Nodes  Nodes
	NotOwn error // why this node is not asked itself; nil if it is

	again struct {
		sync.Mutex
		of map[int]state.Commit // by number of the map
	}
}

// gaveUp looks again which nodes have copies of maps, and reports whether a node has given one up.
func (p *Column) gaveUp(ctx context.Context, node string, maps []int) (gave bool) {
	if p.All.Know(ctx) != nil {
		return false
	}
	p.again.Lock()
	defer p.again.Unlock()
	if p.again.of == nil {
		p.again.of = make(map[int]state.Commit)
	}
	for _, i := range maps {
		was := p.Maps.At(i)
		c, ok := p.All.Commit(p.Stage, was.Map)
		if ok && c.Sum == was.Sum {
			gave = gave || !slices.Contains(c.Nodes, node)
			p.again.of[i] = c
		}
	}
	return gave
}

// now are some maps as this node knew them last.
func (p *Column) now(some []int) []state.Commit {
	p.again.Lock()
	defer p.again.Unlock()
	all := make([]state.Commit, len(some))
	for k, i := range some {
		all[k] = p.last(i)
	}
	return all
}

// At is a map as this node knew it last.
func (p *Column) At(i int) state.Commit {
	p.again.Lock()
	defer p.again.Unlock()
	return p.last(i)
}

// last is the commit of a map as it is known now. The lock is held.
func (p *Column) last(i int) state.Commit {
	if c, ok := p.again.of[i]; ok {
		return c
	}
	return p.Maps.At(i)
}

// Own reports whether a node is this one.
func (p *Column) Own(node string) bool { return node == p.All.Self() }

// Name is the name of the part which is these pieces. The maps of a sealed stage never change, so
// that the first, the last and how many there are say which they are.
func (p *Column) Name() Name {
	kind, first, last, n := uint64(0), uint64(0), uint64(0), p.Maps.Len()
	if p.Whole {
		kind = 1
	}
	if n > 0 {
		first, last = p.Maps.At(0).Map, p.Maps.At(n-1).Map
	}
	return Name{p.Stage, p.Generation, p.Number, kind, first, last, uint64(n)}
}

// Request is what is asked of a node for some maps.
func (p *Column) Request(maps []int, hurry bool) Request {
	return Request{Terms: p.Terms, Part: p.Number, Whole: p.Whole, Maps: p.now(maps), Hurry: hurry}
}

// Lost says which map has no copy left, if one has none.
func (p *Column) Lost() error {
	for _, c := range p.Maps.All() {
		if len(c.Nodes) == 0 {
			return lost(c)
		}
	}
	return nil
}

func lost(c state.Commit) error {
	return meta.Worded(meta.ErrLost, "map %d has no copy left; commit the same bytes again, or begin the stage anew with: rankfs shuffle reset JOB/STAGE", c.Map)
}

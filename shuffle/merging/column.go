package merging

import (
	"context"
	"fmt"
	"sync"

	"rankfs/meta/state"
	"rankfs/shuffle/pieces"
)

// Pieces are one of each of some maps: what they have of a part, or in place of that a slice of
// each, the samples of these, or all of a map.
type Pieces struct {
	Number uint64         // of the part, or of the slice
	Maps   state.Maps     // in their order
	Each   []pieces.Piece // of each map, once they were measured
}

// Is are the pieces themselves.
func (p *Pieces) Is() *Pieces { return p }

// Map is the number of a map, which may be higher than how many there are before it.
func (p *Pieces) Map(i int) uint64 { return p.Maps.At(i).Map }

// Bytes are the bytes of all pieces.
func (p *Pieces) Bytes() int64 { return pieces.SizeOf(p.Each) }

// Every is the numbers that all pieces have here.
func (p *Pieces) Every() []int {
	all := make([]int, p.Maps.Len())
	for i := range all {
		all[i] = i
	}
	return all
}

// Begins are where the pieces begin when those of some maps stand one after the other, and where
// they end.
func (p *Pieces) Begins(some []int) []int64 {
	begin := make([]int64, len(p.Each)+1)
	for _, i := range some {
		begin[i+1] = p.Each[i].Size
	}
	for i := range p.Each {
		begin[i+1] += begin[i]
	}
	return begin
}

// A Column is pieces that were measured, and brings them from the nodes that have copies of them.
// It may be used by several goroutines.
type Column interface {
	Is() *Pieces
	// Lend are the pieces that are in memory of this node, and are right, until they are given
	// back; nil for one that is not.
	Lend() (here [][]byte, give func())
	// Gather writes some pieces into dst, one after the other. They are right.
	Gather(ctx context.Context, some []int, dst []byte) error
	Feed
}

// A Feed brings a piece in portions. Nodes that have failed before are asked no more.
type Feed interface {
	// Bring writes bytes of a piece into dst, from one on, and says which node they came of. They
	// are not checked.
	Bring(ctx context.Context, i int, off int64, dst []byte, failed *Failures) (node string, err error)
	// Look has a node look whether its copy of a piece is right.
	Look(ctx context.Context, i int, node string) error
	// GaveUp reports whether a node has given its copy of a piece up.
	GaveUp(ctx context.Context, i int, node string) bool
}

// Failures are the nodes that did not give what they were asked for, and why. The lock guards
// which table it is; none changes.
type Failures struct {
	mu sync.Mutex
	of map[string]error
}

// Add notes why a node is asked no more.
func (f *Failures) Add(node string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]error{node: fmt.Errorf("node %s: %w", node, err)}
	for was, err := range f.of {
		if was != node {
			all[was] = err
		}
	}
	f.of = all
}

// Now are the failures so far, by node.
func (f *Failures) Now() map[string]error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of
}

// held are pieces of columns that are in memory, and are right.
type held map[Column][][]byte

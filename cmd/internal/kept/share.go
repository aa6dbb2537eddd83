package kept

import (
	"fmt"

	"rankfs/cache"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/meta"
)

// A share is the part of a view that this node is to have: the batches of its ranks,
// or the chunks that it fetches for them.
type share struct {
	series *cache.Series
	kind   string
	ranks  []uint64 // of batches
	list   []uint64 // of chunks
	bytes  int64    // about
}

// shareOf is the part of a view that the ranks of this node read, or one rank.
func shareOf(v *views.View, rank *uint64) (s share, err error) {
	b := v.Batches()
	_, kind := cachedAs(b)
	if b.Chunks != nil {
		if rank != nil {
			return s, fmt.Errorf("warm up rank %d %w: the ranks of this view read parts of the same chunks; warm up all of them", *rank, meta.ErrInvalid)
		}
		return shareOfChunks(b), nil
	}
	s = share{series: b.Series(), kind: kind}
	switch {
	case rank == nil:
		s.ranks = v.RanksHere()
	case *rank < b.Cut().Ranks:
		s.ranks = []uint64{*rank}
	default:
		return s, fmt.Errorf("warm up rank %d %w: the view has %d ranks", *rank, meta.ErrInvalid, b.Cut().Ranks)
	}
	s.bytes = int64(float64(b.Version.Index.Bytes()) / float64(b.Cut().Ranks) * float64(len(s.ranks)))
	return s, nil
}

// shareOfChunks has the chunks that this node owns.
func shareOfChunks(b *views.Batches) share {
	s := share{series: b.ChunkSeries(), kind: control.Chunks}
	x := b.Version.Index
	for chunk := range x.Chunks() {
		if b.Chunks.Own(chunk) {
			s.list = append(s.list, uint64(chunk))
			s.bytes += x.ChunkBytes(chunk)
		}
	}
	return s
}

// count is the number of batches or chunks.
func (s share) count() uint64 {
	if s.list != nil {
		return uint64(len(s.list))
	}
	return uint64(len(s.ranks)) * s.series.Steps
}

// elsewhere reports whether a view has batches, none of which this node is to have.
func (s share) elsewhere(v *views.View) bool {
	return s.count() == 0 && v.Batches().Steps() > 0
}

// at is one batch or chunk; batches come in the order in which they are read.
func (s share) at(i uint64) (rank, step uint64) {
	if s.list != nil {
		return 0, s.list[i]
	}
	n := uint64(len(s.ranks))
	return s.ranks[i%n], i / n
}

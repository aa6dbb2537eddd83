package views

import (
	"context"
	"iter"

	"rankfs/cache"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// ChunkSlabs are the chunks of a version as the cache knows them: a series whose steps are
// the chunks.
type chunkSlabs struct {
	*plan.Plan
	chunks *batch.Chunks
	series *cache.Series
}

// newChunkSlabs makes the chunk slabs of a version. Readers is the plan that reads its
// chunks, nil if that is not known.
func newChunkSlabs(v *batch.Version, readers *plan.Plan) *chunkSlabs {
	s := &chunkSlabs{Plan: plan.OfChunks(v.Plans), chunks: &batch.Chunks{Version: v, Readers: readers}}
	s.series = &cache.Series{
		ID: s.ID(), Dataset: v.Index.Fingerprint(), Steps: s.Steps(), Shared: true,
		Job:   cache.JobOf(s.ID()), // fills of batches read them, and no rank does
		Ahead: readers != nil, Own: s.own, Keys: s.Plan, Find: s.Plan.Find, Course: s, Filler: s,
	}
	return s
}

// inOrder reports whether the chunks are read one after the other.
func (s *chunkSlabs) inOrder() bool {
	return s.chunks.Readers != nil && s.chunks.Readers.View().Order.Kind == meta.OrderNone
}

// Fill writes a chunk into dst, from the source.
func (s *chunkSlabs) Fill(ctx context.Context, _, step uint64, dst []byte) iter.Seq2[cache.Input, error] {
	return cache.Whole(s.chunks.Version.FillChunk(ctx, int(step), dst))
}

// Size is the number of bytes in a chunk.
func (s *chunkSlabs) Size(_, step uint64) int64 {
	return s.chunks.Version.Index.ChunkBytes(int(step))
}

// Next is the same series: all epochs have the same chunks.
func (s *chunkSlabs) Next() *cache.Series { return s.series }

// own reports whether this node owns a chunk, which it may then fetch before a batch needs it, if
// it is known for whom.
func (s *chunkSlabs) own(step uint64) bool { return s.chunks.Own(int(step)) }

// A ChunksForOthers has the chunks of a version for other nodes. It is a batch.Slabs.
type chunksForOthers struct {
	*chunkSlabs
	cache *cache.Cache
}

// Chunk implements batch.Slabs.
func (s chunksForOthers) Chunk(ctx context.Context, number int) (batch.Slab, error) {
	slab, err := s.cache.Input(ctx, s.series, 0, uint64(number), s.inOrder())
	if err != nil {
		return nil, err
	}
	return slab, nil
}

// HasChunk implements batch.Slabs.
func (s chunksForOthers) HasChunk(number int) bool {
	_, ok := s.cache.Contains(s.Key(0, uint64(number)))
	return ok
}

package views

import (
	"context"

	"rankfs/cache"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// ChunkSlabs are the chunks of a version in the cache: its cache.Plan, whose steps are
// the chunks, and its batch.Slabs.
type chunkSlabs struct {
	*plan.Plan
	chunks *batch.Chunks
	cache  *cache.Cache
}

// newChunkSlabs makes the chunk slabs of a version. Readers is the plan that reads its
// chunks, nil if that is not known.
func newChunkSlabs(k *cache.Cache, v *batch.Version, readers *plan.Plan) *chunkSlabs {
	s := &chunkSlabs{plan.OfChunks(v.Plans), &batch.Chunks{Version: v, Readers: readers}, k}
	s.chunks.Slabs = s
	return s
}

// Chunk implements batch.Slabs.
func (s *chunkSlabs) Chunk(ctx context.Context, number int) (batch.Slab, error) {
	inOrder := s.chunks.Readers != nil && s.chunks.Readers.View().Order.Kind == meta.OrderNone
	slab, err := s.cache.Part(ctx, s, 0, uint64(number), inOrder)
	if err != nil {
		return nil, err
	}
	return slab, nil
}

// HasChunk implements batch.Slabs.
func (s *chunkSlabs) HasChunk(number int) bool {
	_, ok := s.cache.Contains(s, 0, uint64(number))
	return ok
}

// Fill writes a chunk into dst, from the source.
func (s *chunkSlabs) Fill(ctx context.Context, _, step uint64, dst []byte) error {
	return s.chunks.Version.FillChunk(ctx, int(step), dst)
}

// Size is the number of bytes in a chunk.
func (s *chunkSlabs) Size(_, step uint64) int64 {
	return s.chunks.Version.Index.ChunkBytes(int(step))
}

// Dataset names what all views of a dataset are made of.
func (s *chunkSlabs) Dataset() string { return s.chunks.Version.Index.Fingerprint() }

// Key names a chunk.
func (s *chunkSlabs) Key(rank, step uint64) cache.Key { return cache.Key(s.Batch(rank, step)) }

// Find is the inverse of Key.
func (s *chunkSlabs) Find(k cache.Key) (rank, step uint64, ok bool) {
	return s.Plan.Find(plan.BatchID(k))
}

// Next is the same plan: all epochs have the same chunks.
func (s *chunkSlabs) Next() cache.Plan { return s }

// Once is false: chunks are read in every epoch.
func (s *chunkSlabs) Once() bool { return false }

// Shared is true: fills of batches copy from chunks.
func (s *chunkSlabs) Shared() bool { return true }

// Ahead reports whether a chunk may be fetched before a batch needs it: only if this
// node is known to own it.
func (s *chunkSlabs) Ahead(_, step uint64) bool {
	return s.chunks.Readers != nil && s.chunks.Own(int(step))
}

package views

import (
	"context"
	"iter"

	"rankfs/cache"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// Batches are the batches of a view, and what the cache knows of them.
type Batches struct {
	*batch.Batches
	series    *cache.Series
	slabs     *chunkSlabs     // of Chunks
	following func() *Batches // of the next epoch
}

// seriesOf is the series of batches. The job is that of the ranks that read the plan: more is
// not known of it.
func seriesOf(b *Batches) *cache.Series {
	return &cache.Series{
		ID: b.ID(), Dataset: b.Version.Index.Fingerprint(), Job: cache.JobOf(b.ID()), Steps: b.Steps(),
		Once: b.Once(), Ahead: true, Keys: b.Plan, Find: b.Plan.Find, Course: b, Filler: b,
	}
}

// Series are the batches as the cache knows them.
func (b *Batches) Series() *cache.Series { return b.series }

// Fill writes a batch into dst. Its inputs are chunks of the dataset.
func (b *Batches) Fill(ctx context.Context, rank, step uint64, dst []byte) iter.Seq2[cache.Input, error] {
	return func(yield func(cache.Input, error) bool) {
		for ranges, err := range b.Batches.Fill(ctx, rank, step, dst) {
			var input cache.Input
			if err == nil {
				input = cache.Input{Series: b.slabs.series, Step: uint64(ranges.Chunk), InOrder: b.slabs.inOrder(), Copier: ranges}
			}
			if !yield(input, err) {
				return
			}
		}
	}
}

// keyFor is Key for an open, which waits if the epoch has to be divided for it.
func (b *Batches) keyFor(account *stall.Open, rank, step uint64) cache.Key {
	if k, known := b.Known(rank, step); known {
		return k
	}
	defer account.End(account.For(stall.Overhead))
	return b.Key(rank, step)
}

// Next is the epoch to come: the ranks will be where they are.
func (b *Batches) Next() *cache.Series {
	if next := b.following(); next != nil {
		return next.series
	}
	return nil
}

// Once reports whether batches are of no use after their readers: other epochs have others, or
// what is kept is the chunks that they are made of.
func (b *Batches) Once() bool {
	if b.View().ByChunk() {
		return false
	}
	return b.View().Order.Kind != meta.OrderNone || b.Chunks != nil
}

// CachedAs are the series that name, in the cache's keys, what it keeps of b: the batches,
// or the chunks that these are or are made of.
func (b *Batches) CachedAs() (series [][16]byte, chunks bool) {
	switch {
	case b.Chunks != nil:
		return [][16]byte{b.slabs.ID()}, true
	case b.View().ByChunk():
		return [][16]byte{b.ChunksID(), b.ID()}, true
	}
	return [][16]byte{b.ID()}, false
}

// ChunkSeries is, as the cache knows them, the chunks that the batches are made
// of; only if there are such.
func (b *Batches) ChunkSeries() *cache.Series { return b.slabs.series }

package node

import (
	"context"
	"fmt"
	"sync"

	"rankfs/cache"
	"rankfs/cmd/internal/control"
	"rankfs/fetch/batch"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// Batches are those of a view as the cache knows them. They are a cache.Plan.
type batches struct {
	*batch.Batches
	following func() *batches // of the next epoch
}

// Dataset names what all views of a dataset are made of.
func (b *batches) Dataset() string { return b.Version.Index.Fingerprint() }

// Key names the content of a batch.
func (b *batches) Key(rank, step uint64) cache.Key { return cache.Key(b.Batch(rank, step)) }

// Find is the inverse of Key.
func (b *batches) Find(k cache.Key) (rank, step uint64, ok bool) {
	return b.Plan.Find(plan.BatchID(k))
}

// Next is the plan of the epoch to come: the ranks will be where they are.
func (b *batches) Next() cache.Plan {
	if next := b.following(); next != nil {
		return next
	}
	return nil
}

// Once reports whether other epochs have other batches, or it is the chunks they are
// made of that are kept.
func (b *batches) Once() bool {
	if b.View().Step.Unit == meta.UnitChunk {
		return false
	}
	return b.View().Order.Kind != meta.OrderNone || b.Chunks != nil
}

// Shared is false: no fill copies from batches.
func (b *batches) Shared() bool { return false }

// Ahead is true: a batch may be made ready before it is opened.
func (b *batches) Ahead(_, _ uint64) bool { return true }

// kept are the plans that name, in the cache's keys, what it keeps of b: the batches,
// or the chunks that these are or are made of.
func (b *batches) kept() (plans [][16]byte, kind string) {
	switch {
	case b.Chunks != nil:
		return [][16]byte{plan.OfChunks(b.Version.Plans).ID()}, control.Chunks
	case b.View().Step.Unit == meta.UnitChunk:
		return [][16]byte{b.ChunksID(), b.ID()}, control.Chunks
	}
	return [][16]byte{b.ID()}, control.Batches
}

// batches makes those of a view whose ranks sit so, out of chunks where that saves
// fetching.
func (n *Node) batches(v meta.View, of *batch.Version, seats []plan.Seat) (*batches, error) {
	b := &batches{Batches: &batch.Batches{
		Plan: plan.New(v, of.Plans), Version: of, Sizes: n.sizes, Peers: n.member.peers,
	}}
	b.following = sync.OnceValue(func() *batches { return n.following(b, seats) })
	if err := b.Place(seats); err != nil {
		return nil, fmt.Errorf("plan of %v: %w", v, err)
	}
	switch {
	case !of.Source.Remote:
	case v.Step.Unit == meta.UnitChunk:
		b.Keepers = n.keepers(v, of)
	case staysCached(v, of.Index, n.room()*int64(n.member.owners.Count())):
		b.Chunks = newChunks(n.cache, of, b.Plan)
		b.Roomy = staysCached(v, of.Index, n.room())
	}
	n.entitle(b)
	if _, ok := n.learnt.find(v.Dataset); ok {
		n.teach()
	}
	return b, nil
}

// following is the plan of the epoch after that of b, which no rank has opened yet;
// nil if there is none.
func (n *Node) following(b *batches, seats []plan.Seat) *batches {
	v := b.View()
	if v.Order.Kind == meta.OrderNone {
		return b
	}
	if v.Epoch++; v.Epoch == 0 {
		return nil
	}
	next, err := n.batches(v, b.Version, seats)
	if err != nil {
		n.config.Log.Debug("next epoch not planned ahead", "view", v, "cause", err)
		return nil
	}
	return next
}

// room is how much the cache can be trusted to keep beside the batches in use.
func (n *Node) room() int64 {
	room := n.config.RAMBytes / 4 * 3
	for _, d := range n.cache.Stats().NVMe {
		room += d.Budget - d.Others
	}
	return room
}

// staysCached reports whether chunks stay in a cache of so many bytes from one use to
// the next. If not, fetching them whole would fetch them again and again, and records
// are better asked for one by one.
func staysCached(v meta.View, x *index.Index, capacity int64) bool {
	between := x.Bytes() // that are read until a chunk's records have all had their turn
	switch v.Order.Kind {
	case meta.OrderNone:
		between = 0
	case meta.OrderWindow:
		mean := float64(x.Bytes()) / float64(max(1, x.Records()))
		between = min(between, int64(mean*float64(v.Order.Window)))
	}
	largest := x.Bytes() / int64(max(1, x.Chunks()))
	return between+2*largest <= capacity
}

// ChunkSlabs are the chunks of a version in the cache: its cache.Plan, whose steps are
// the chunks, and its batch.Slabs.
type chunkSlabs struct {
	*plan.Plan
	chunks *batch.Chunks
	cache  *cache.Cache
}

// newChunks makes the chunks of a version that are read by a plan; nil: it is not
// known by which.
func newChunks(k *cache.Cache, v *batch.Version, readers *plan.Plan) *batch.Chunks {
	c := &batch.Chunks{Version: v, Readers: readers}
	c.Slabs = &chunkSlabs{plan.OfChunks(v.Plans), c, k}
	return c
}

// Chunk implements batch.Slabs.
func (s *chunkSlabs) Chunk(ctx context.Context, number int) (batch.Slab, error) {
	slab, err := s.cache.Part(ctx, s, 0, uint64(number))
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

// Ahead reports whether a chunk may be fetched before a batch needs it: not one whose
// owner is another node, or may be.
func (s *chunkSlabs) Ahead(_, step uint64) bool {
	return s.chunks.Readers != nil && s.chunks.Own(int(step))
}

package node

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"rankfs/cache"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// Parts are the chunks of a source whose bytes are dear to ask for and cheap
// once they flow: each is fetched whole, once, and kept in the cache for all
// batches, views and epochs that want something of it.
type parts struct {
	cache *cache.Cache
	plan  *plan // whose steps are the chunks
}

func newParts(c *content, s *sizes, k *cache.Cache) *parts {
	v := meta.View{Ranks: 1, Step: meta.BatchSize{N: 1, Unit: meta.UnitChunk}}
	p := newPlan(v, c, s)
	p.shared = true
	p.id = p.identify(" parts")
	return &parts{k, p}
}

// A piece is a run of bytes that a batch takes from a chunk.
type piece struct {
	record, n uint64 // which records
	at, len   int64  // where in the batch
}

// gather takes the records of a group from parts.
func (f *fill) gather(ctx context.Context, g *group) error {
	x := f.plan.content.index
	g.extents, g.pieces = x.AppendExtents(g.extents[:0], g.records), g.pieces[:0]
	for i, r := range g.records {
		at := f.at
		if _, err := f.next(g.extents[i].Len); err != nil {
			return err
		}
		g.pieces = append(g.pieces, piece{r, 1, at, g.extents[i].Len})
	}
	slices.SortStableFunc(g.pieces, func(a, b piece) int { return cmp.Compare(a.record, b.record) })
	for rest := g.pieces; len(rest) > 0; {
		number := x.ChunkOf(rest[0].record)
		c, n := x.Chunk(number), 1
		for n < len(rest) && rest[n].record < c.First+c.Records {
			n++
		}
		if err := f.take(ctx, uint64(number), c, join(rest[:n])); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// join makes one piece of those that follow one another on both sides. It
// works in place.
func join(pieces []piece) []piece {
	kept := pieces[:1]
	for _, p := range pieces[1:] {
		last := &kept[len(kept)-1]
		if p.record == last.record+last.n && p.at == last.at+last.len {
			last.n, last.len = last.n+p.n, last.len+p.len
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// take copies pieces of one chunk, in the order of their records.
func (f *fill) take(ctx context.Context, number uint64, c index.Chunk, pieces []piece) error {
	s, err := f.plan.parts.cache.Part(ctx, f.plan.parts.plan, 0, number)
	if errors.Is(err, meta.ErrNoSpace) {
		return f.direct(ctx, pieces)
	}
	if err != nil {
		return err
	}
	defer s.Release()
	x := f.plan.content.index
	whole, isSolid := solid(x, c)
	off, record := int64(0), c.First // of that record in the slab
	for _, p := range pieces {
		if isSolid {
			off = x.Extent(p.record).Off - whole.Off
		}
		for ; !isSolid && record < p.record; record++ {
			off += x.Size(record)
		}
		if _, err := s.ReadAt(f.dst[p.at:p.at+p.len], off); err != nil {
			return err
		}
	}
	return nil
}

// direct takes pieces from the source: for what the cache has no room for.
func (f *fill) direct(ctx context.Context, pieces []piece) error {
	for _, p := range pieces {
		extents := recordExtents(f.plan.content.index, p.record, p.n)
		if err := f.data.Read(ctx, extents, f.dst[p.at:p.at+p.len]); err != nil {
			return err
		}
	}
	return nil
}

// worthParts reports whether chunks stay in a cache of so many bytes from one
// use to the next. If not, fetching them whole would fetch them again and
// again, and records are better asked for one by one.
func worthParts(v meta.View, x *index.Index, capacity int64) bool {
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

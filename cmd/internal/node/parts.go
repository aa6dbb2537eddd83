package node

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"rankfs/cache"
	"rankfs/cache/stall"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// Parts are the chunks of a source whose bytes are dear to ask for and cheap
// once they flow: each is fetched whole, once, and kept in the cache for all
// batches, views and epochs that want something of it.
type parts struct {
	cache  *cache.Cache
	filler *filler // whose steps are the chunks
}

// Readers are those of parts: the ranks of a plan, or any if that is nil.
type readers struct{ of *plan.Plan }

// newParts makes the parts of what readers read; nil: they are not known.
func newParts(c *content, s *sizes, k *cache.Cache, r *readers) *parts {
	p := newFiller(plan.OfChunks(c.version), c, s)
	p.shared = true
	p.following = func() *filler { return p }
	p.readers = r
	return &parts{k, p}
}

// owner is the node that fetches a chunk.
func (p *parts) owner(number int) string { return p.filler.owner(number) }

// has reports whether a chunk is in the cache.
func (p *parts) has(number int) bool {
	if p == nil {
		return false
	}
	_, ok := p.cache.Contains(p.filler, 0, uint64(number))
	return ok
}

// A shelf is a chunk in the cache, with where its records stand.
type shelf struct {
	*cache.Slab
	index  *index.Index
	chunk  index.Chunk
	whole  index.Extent
	solid  bool
	record uint64 // where that is not the source's layout: the record at off
	off    int64
}

func (p *parts) open(ctx context.Context, number int) (*shelf, error) {
	s, err := p.cache.Part(ctx, p.filler, 0, uint64(number))
	if err != nil {
		return nil, err
	}
	x := p.filler.content.index
	l := &shelf{Slab: s, index: x, chunk: x.Chunk(number)}
	l.whole, l.solid = solid(x, l.chunk)
	l.record = l.chunk.First
	return l, nil
}

// offset is where a record of the chunk begins, or the chunk ends. Ask in the
// order of records.
func (l *shelf) offset(record uint64) int64 {
	if record == l.chunk.First+l.chunk.Records {
		return l.chunk.Bytes
	}
	if l.solid {
		return l.index.Extent(record).Off - l.whole.Off
	}
	for ; l.record < record; l.record++ {
		l.off += l.index.Size(l.record)
	}
	return l.off
}

// A piece is a run of bytes that a batch takes from a chunk.
type piece struct {
	record, n uint64 // which records
	at, len   int64  // where in the batch
}

// gather takes records from parts, here or at their owners.
func (f *fill) gather(ctx context.Context, b *recordBatch) error {
	x := f.filler.content.index
	if err := f.assignOffsets(b); err != nil {
		return err
	}
	slices.SortStableFunc(b.pieces, func(a, b piece) int { return cmp.Compare(a.record, b.record) })
	var own []chunkPieces
	away := make(map[string][]piece)
	for rest := b.pieces; len(rest) > 0; {
		number := x.ChunkOf(rest[0].record)
		c, n := x.Chunk(number), 1
		for n < len(rest) && rest[n].record < c.First+c.Records {
			n++
		}
		pieces := join(rest[:n])
		if owner := f.filler.fetches(number); owner == f.filler.content.owners.Self {
			own = append(own, chunkPieces{number, pieces})
		} else {
			away[owner] = append(away[owner], pieces...)
		}
		rest = rest[n:]
	}
	return f.fetch(ctx, own, away)
}

// fetches is the node to ask for a chunk: its owner, or this one if that does not
// answer and there is room here. Mostly the cluster finds a new owner for what a node
// had that is gone; without a majority nobody does, and record by record the source
// would be asked a thousand times for what one chunk has.
func (p *filler) fetches(number int) string {
	self, owner := p.content.owners.Self, p.parts.owner(number)
	if owner != self && p.roomy && p.peers.Rests(owner) {
		return self
	}
	return owner
}

// assignOffsets finds the places of records in the batch.
func (f *fill) assignOffsets(b *recordBatch) error {
	b.extents, b.pieces = f.filler.content.index.AppendExtents(b.extents[:0], b.records), b.pieces[:0]
	for i, r := range b.records {
		at := f.at
		if _, err := f.next(b.extents[i].Len); err != nil {
			return err
		}
		b.pieces = append(b.pieces, piece{r, 1, at, b.extents[i].Len})
	}
	return nil
}

// ChunkPieces is what a batch takes of one chunk.
type chunkPieces struct {
	chunk  int
	pieces []piece
}

// fetch takes what is this node's to fetch, while others send what is theirs.
func (f *fill) fetch(ctx context.Context, own []chunkPieces, away map[string][]piece) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var others sync.WaitGroup
	errs := make(chan error, len(away)+1)
	for owner, pieces := range away {
		ctx := stall.Fork(ctx)
		others.Go(func() {
			if err := f.receive(ctx, owner, pieces); err != nil {
				cancel(err)
				errs <- err
			}
		})
	}
	for _, l := range own {
		if err := f.take(ctx, l); err != nil {
			cancel(err)
			errs <- err
			break
		}
	}
	idle := stall.Idle(ctx)
	others.Wait()
	idle.Leave(0)
	close(errs)
	return <-errs // the first one: the others may be its consequence
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

// total is how many bytes pieces have.
func total(pieces []piece) (bytes int64) {
	for _, p := range pieces {
		bytes += p.len
	}
	return bytes
}

// take copies pieces of one chunk, in the order of their records.
func (f *fill) take(ctx context.Context, l chunkPieces) error {
	s, err := f.filler.parts.open(ctx, l.chunk)
	if errors.Is(err, meta.ErrNoSpace) {
		return f.direct(ctx, l.pieces, f.dst)
	}
	if err != nil {
		return err
	}
	defer s.Release()
	from := stall.Decode
	if s.Tier() == "nvme" {
		from = stall.Disk
	}
	defer stall.Enter(ctx, from).Leave(total(l.pieces))
	for _, p := range l.pieces {
		if _, err := s.ReadAt(f.dst[p.at:p.at+p.len], s.offset(p.record)); err != nil {
			return err
		}
	}
	return nil
}

// direct takes pieces from the source, each to its place in dst: for what the
// cache has no room for, or its owner does not send.
func (f *fill) direct(ctx context.Context, pieces []piece, dst []byte) error {
	for _, p := range pieces {
		extents := recordExtents(f.filler.content.index, p.record, p.n)
		if err := f.ask(ctx, extents, dst[p.at:p.at+p.len]); err != nil {
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

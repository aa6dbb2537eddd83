package batch

import (
	"context"
	"errors"

	"rankfs/cache/stall"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// Chunks are the chunks of a source where a request costs much and a further byte
// little. Each is fetched whole, once, by the node that owns it, and stays in that
// node's cache for all batches, views and epochs that use it. They may be used
// concurrently.
type Chunks struct {
	Version *Version
	Slabs   Slabs
	Readers *plan.Plan // by which ranks read the chunks; nil: not known
}

// Slabs is the cache, as far as it has the chunks of one version. It may be used
// concurrently.
type Slabs interface {
	// Chunk returns the slab of a chunk, filled by Version.FillChunk if the cache has
	// none. An error that wraps meta.ErrNoSpace means that there is no room for it.
	Chunk(ctx context.Context, number int) (Slab, error)
	// HasChunk reports whether a chunk is in the cache.
	HasChunk(number int) bool
}

// A Slab is a chunk in the cache, which stays there until Release.
type Slab interface {
	ReadAt(p []byte, off int64) (int, error)
	Tier() string
	Release()
}

// Owner is the node that fetches a chunk: where it is read most, if that is up.
func (c *Chunks) Owner(number int) string {
	owners := c.Version.Source.owners
	if c.Readers != nil {
		if host, ok := c.Readers.OwnerHost(number); ok {
			if id, ok := owners.At(host); ok {
				return id
			}
		}
	}
	return owners.Of(c.Version.Source.seed, number, c.Version.Hosts(number))
}

// Own reports whether this node is the one that fetches a chunk.
func (c *Chunks) Own(number int) bool { return c.Owner(number) == c.Version.Source.owners.Self }

// fetcher is the node to ask for a chunk: its owner, or this node if the owner does not
// answer and there is room here. Mostly the cluster finds new owners for the chunks of
// a node that is gone. Without a majority it does not, and reading record by record
// would cost the source a thousand requests for each chunk.
func (b *Batches) fetcher(number int) string {
	self, owner := b.Version.Source.owners.Self, b.Chunks.Owner(number)
	if owner != self && b.Roomy && b.Peers.Rests(owner) {
		return self
	}
	return owner
}

// copyFromChunk copies the pieces of one chunk, in the order of their records. A chunk
// for which the cache has no room is not fetched whole: the source has the records.
func (f *fill) copyFromChunk(ctx context.Context, c chunkPieces) error {
	s, err := f.batches.Chunks.open(ctx, c.chunk)
	if errors.Is(err, meta.ErrNoSpace) {
		return f.readPieces(ctx, c.pieces, f.dst)
	}
	if err != nil {
		return err
	}
	defer s.Release()
	from := stall.Decode
	if s.Tier() == "nvme" {
		from = stall.Disk
	}
	defer stall.Enter(ctx, from).Leave(total(c.pieces))
	for _, p := range c.pieces {
		if _, err := s.ReadAt(f.dst[p.at:p.at+p.len], s.offset(p.record)); err != nil {
			return err
		}
	}
	return nil
}

// A chunkSlab is a slab with where in it the records of the chunk begin. It is for one
// goroutine.
type chunkSlab struct {
	Slab
	index  *index.Index
	chunk  index.Chunk
	whole  index.Extent
	solid  bool
	record uint64 // where that is not the source's layout: the record at off
	off    int64
}

func (c *Chunks) open(ctx context.Context, number int) (*chunkSlab, error) {
	s, err := c.Slabs.Chunk(ctx, number)
	if err != nil {
		return nil, err
	}
	x := c.Version.Index
	l := &chunkSlab{Slab: s, index: x, chunk: x.Chunk(number)}
	l.whole, l.solid = solid(x, l.chunk)
	l.record = l.chunk.First
	return l, nil
}

// offset is where a record of the chunk begins, or the chunk ends. It is to be called
// in the order of records.
func (l *chunkSlab) offset(record uint64) int64 {
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

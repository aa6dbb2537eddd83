package batch

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"rankfs/cache/stall"
)

// A piece is a run of bytes that a batch takes from a chunk.
type piece struct {
	record, n uint64 // which records
	at, len   int64  // where in the batch
}

// A chunkPieces holds the pieces of a batch that come from one chunk.
type chunkPieces struct {
	chunk  int
	pieces []piece
}

// fromChunks takes records from chunks, here or at the nodes that own the chunks.
func (f *fill) fromChunks(ctx context.Context, r *recordBatch) error {
	if err := f.assignOffsets(r); err != nil {
		return err
	}
	slices.SortStableFunc(r.pieces, func(a, b piece) int { return cmp.Compare(a.record, b.record) })
	var own []chunkPieces
	away := make(map[string][]piece)
	for rest := r.pieces; len(rest) > 0; {
		number := f.index.ChunkOf(rest[0].record)
		c, n := f.index.Chunk(number), 1
		for n < len(rest) && rest[n].record < c.First+c.Records {
			n++
		}
		pieces := join(rest[:n])
		if node := f.batches.fetcher(number); node == f.batches.Version.Source.owners.Self {
			own = append(own, chunkPieces{number, pieces})
		} else {
			away[node] = append(away[node], pieces...)
		}
		rest = rest[n:]
	}
	return f.gather(ctx, own, away)
}

// assignOffsets finds the places of records in the batch.
func (f *fill) assignOffsets(r *recordBatch) error {
	r.extents, r.pieces = f.index.AppendExtents(r.extents[:0], r.records), r.pieces[:0]
	for i, record := range r.records {
		at := f.at
		if _, err := f.next(r.extents[i].Len); err != nil {
			return err
		}
		r.pieces = append(r.pieces, piece{record, 1, at, r.extents[i].Len})
	}
	return nil
}

// gather copies pieces of the chunks that this node fetches, while other nodes send
// pieces of theirs.
func (f *fill) gather(ctx context.Context, own []chunkPieces, away map[string][]piece) error {
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
	for _, c := range own {
		if err := f.copyFromChunk(ctx, c); err != nil {
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

// readPieces reads pieces from the source, each to its place in dst, because the cache
// has no room for the chunk or the chunk's owner does not send it.
func (f *fill) readPieces(ctx context.Context, pieces []piece, dst []byte) error {
	for _, p := range pieces {
		extents := recordExtents(f.index, p.record, p.n)
		if err := readOnce(ctx, f.data, extents, dst[p.at:p.at+p.len]); err != nil {
			return err
		}
	}
	return nil
}

// join merges pieces that are adjacent both in the records and in dst. It works in
// place.
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

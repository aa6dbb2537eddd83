package batch

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"rankfs/meta/stall"
)

// fromChunks takes records from chunks, here or at the nodes that own the chunks.
func (f *fill) fromChunks(ctx context.Context, r *recordBatch) error {
	if err := f.assignOffsets(r); err != nil {
		return err
	}
	slices.SortStableFunc(r.pieces, func(a, b piece) int { return cmp.Compare(a.record, b.record) })
	var own []Pieces
	away := make(map[string][]piece)
	for rest := r.pieces; len(rest) > 0; {
		number := f.index.ChunkOf(rest[0].record)
		c, n := f.index.Chunk(number), 1
		for n < len(rest) && rest[n].record < c.First+c.Records {
			n++
		}
		pieces := join(rest[:n])
		if node := f.batches.fetcher(number); node == f.batches.Version.Source.owners.Self {
			own = append(own, Pieces{Chunk: number, fill: f, pieces: pieces})
		} else {
			away[node] = append(away[node], pieces...)
		}
		rest = rest[n:]
	}
	return f.gather(ctx, own, away)
}

// gather has pieces copied of the chunks that this node fetches, while other nodes send
// pieces of theirs.
func (f *fill) gather(ctx context.Context, own []Pieces, away map[string][]piece) error {
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
	for i := range own {
		if err := own[i].await(ctx); err != nil {
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

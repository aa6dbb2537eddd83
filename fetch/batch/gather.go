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
	slices.SortStableFunc(r.ranges, func(a, b byteRange) int { return cmp.Compare(a.record, b.record) })
	var own []Ranges
	away := make(map[string][]byteRange)
	for rest := r.ranges; len(rest) > 0; {
		number := f.index.ChunkOf(rest[0].record)
		c, n := f.index.Chunk(number), 1
		for n < len(rest) && rest[n].record < c.First+c.Records {
			n++
		}
		ranges := join(rest[:n])
		if node := f.batches.fetcher(number); node == f.batches.Version.Source.owners.Self {
			own = append(own, Ranges{Chunk: number, version: f.batches.Version, data: f.data, dst: f.dst, ranges: ranges})
		} else {
			away[node] = append(away[node], ranges...)
		}
		rest = rest[n:]
	}
	return f.gather(ctx, own, away)
}

// gather has ranges copied of the chunks that this node fetches, while other nodes send
// ranges of theirs.
func (f *fill) gather(ctx context.Context, own []Ranges, away map[string][]byteRange) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var others sync.WaitGroup
	errs := make(chan error, len(away)+1)
	for owner, ranges := range away {
		ctx := stall.Fork(ctx)
		others.Go(func() {
			if err := f.receive(ctx, owner, ranges); err != nil {
				cancel(err)
				errs <- err
			}
		})
	}
	for i := range own {
		if err := own[i].await(ctx, f.stop); err != nil {
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

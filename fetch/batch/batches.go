package batch

import (
	"context"

	"rankfs/fetch/peers"
	"rankfs/shuffle/plan"
)

// Batches are the batches of a plan, with the ways to their bytes. The fields are set
// before the first use; the methods may be called concurrently.
type Batches struct {
	*plan.Plan
	Version        *Version
	Sizes          *Sizes
	Peers          Peers
	Chunks         *Chunks                  // from which the batches are made; nil: records come straight from the source
	Roomy          bool                     // this node's cache alone has room for all chunks
	EarlierReaders func(chunk int) []string // other nodes that read a chunk which is a batch before, and may have it, the likeliest first; nil: none
}

// Peers are the other nodes. The methods are documented at *peers.Client.
type Peers interface {
	Gather(ctx context.Context, node string, w peers.Want, dst [][]byte) error
	Hedge(ctx context.Context, node string, w peers.Want, dst [][]byte, fallback func(context.Context) error) (spare bool, err error)
	BacksOff(node string) bool
}

// batch is the batch of a rank in a step.
func (b *Batches) batch(rank, step uint64) planned { return planned{b.Plan, b.Version, rank, step} }

// Size is the number of bytes in a batch.
func (b *Batches) Size(rank, step uint64) int64 {
	size, err := b.SizeFor(context.Background(), rank, step)
	if err != nil {
		return 0 // as for every batch: opening one says why
	}
	return size
}

// SizeFor is Size for a caller that may leave: records of different lengths are added
// up.
func (b *Batches) SizeFor(ctx context.Context, rank, step uint64) (int64, error) {
	if length, ok := b.Version.Index.Uniform(); ok {
		return length * int64(b.Records(rank, step)), nil
	}
	of := b.batch(rank, step)
	return b.Sizes.size(of, func() (int64, error) {
		if b.Records(rank, step) <= plan.RecordsAtOnce {
			m := newMarks(of)
			err := m.walk(ctx, m.mu.before, 1)
			return m.mu.before[len(m.mu.before)-1], err
		}
		m, done := b.Sizes.marks(of)
		defer done()
		return m.complete(ctx, b.Sizes.walks)
	})
}

// fetcher is the node to ask for a chunk: its owner, or this node if the owner does not
// answer and there is room here. Mostly the cluster finds new owners for the chunks of
// a node that is gone. Without a majority it does not, and reading record by record
// would cost the source a thousand requests for each chunk.
func (b *Batches) fetcher(number int) string {
	self, owner := b.Version.Source.owners.Self, b.Chunks.Owner(number)
	if owner != self && b.Roomy && b.Peers.BacksOff(owner) {
		return self
	}
	return owner
}

package batch

import (
	"context"
	"sync"

	"rankfs/cache/peers"
	"rankfs/fetch/index"
	"rankfs/shuffle/plan"
)

// Batches are the batches of a plan, with the ways to their bytes. The fields are set
// before the first use; the methods may be called concurrently.
type Batches struct {
	*plan.Plan
	Version *Version
	Sizes   *Sizes
	Peers   Peers
	Chunks  *Chunks                  // from which the batches are made; nil: records come straight from the source
	Roomy   bool                     // this node's cache alone has room for all chunks
	Keepers func(chunk int) []string // other nodes that may keep a chunk which is a batch, the likeliest first; nil: none
}

// Peers are the other nodes. The methods are documented at *peers.Client.
type Peers interface {
	Gather(ctx context.Context, node string, w peers.Want, dst [][]byte) error
	Hedge(ctx context.Context, node string, w peers.Want, dst [][]byte, fallback func(context.Context) error) (spare bool, err error)
	Rests(node string) bool
}

// recordsAtOnce is how many records a fill handles at a time: enough that the fixed
// cost for each such group is nothing, few enough that a cancelled fill ends soon.
const recordsAtOnce = 4096

// A recordBatch is memory for up to recordsAtOnce records of one batch. It is reused.
type recordBatch struct {
	records []uint64
	extents []index.Extent
	pieces  []piece
}

var recordBatches = sync.Pool{New: func() any { return &recordBatch{records: make([]uint64, 0, recordsAtOnce)} }}

// each calls f with the records of a batch in order, some at a time, until one call
// fails.
func (b *Batches) each(rank, step uint64, f func(r *recordBatch) error) error {
	return b.eachFrom(rank, step, 0, f)
}

// eachFrom is each without the first records.
func (b *Batches) eachFrom(rank, step, skip uint64, f func(r *recordBatch) error) error {
	r := recordBatches.Get().(*recordBatch)
	defer recordBatches.Put(r)
	return b.Each(rank, step, skip, r.records[:0], func(records []uint64) error {
		r.records = records
		return f(r)
	})
}

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
	return b.Sizes.size(b, rank, step, func() (int64, error) {
		if b.Records(rank, step) <= recordsAtOnce {
			m := newMarks(b, rank, step)
			err := m.walk(ctx, 0, 0)
			return m.mu.before[len(m.mu.before)-1], err
		}
		m, done := b.Sizes.marks(b, rank, step)
		defer done()
		return m.complete(ctx, b.Sizes.walks)
	})
}

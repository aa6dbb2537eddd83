package batch

import (
	"sync"

	"rankfs/fetch/index"
	"rankfs/shuffle/plan"
)

// A recordBatch is memory for up to plan.RecordsAtOnce records of one batch. It is reused.
type recordBatch struct {
	records []uint64
	extents []index.Extent
	pieces  []piece
}

var recordBatches = sync.Pool{New: func() any { return &recordBatch{records: make([]uint64, 0, plan.RecordsAtOnce)} }}

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

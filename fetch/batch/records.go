package batch

import (
	"errors"
	"sync"

	"rankfs/fetch/index"
	"rankfs/shuffle/plan"
)

// A recordBatch is memory for up to plan.RecordsAtOnce records of one batch. It is reused.
type recordBatch struct {
	records []uint64
	extents []index.Extent
	ranges  []byteRange
}

var recordBatches = sync.Pool{New: func() any { return &recordBatch{records: make([]uint64, 0, plan.RecordsAtOnce)} }}

// EachChunk calls f with the chunks that a batch of a plan has bytes of, and how many, in
// order, until one call fails. A chunk comes again where others are between its records.
func (v *Version) EachChunk(p *plan.Plan, rank, step uint64, f func(chunk int, bytes int64) error) error {
	if p.View().ByChunk() {
		chunks, err := p.AppendChunks(nil, rank, step)
		if err != nil {
			return err
		}
		for _, chunk := range chunks {
			if err := f(chunk, v.Index.ChunkBytes(chunk)); err != nil {
				return err
			}
		}
		return nil
	}
	return p.Each(rank, step, 0, nil, func(records []uint64) error {
		for _, r := range records {
			if err := f(v.Index.ChunkOf(r), v.Index.Size(r)); err != nil {
				return err
			}
		}
		return nil
	})
}

// A planned batch is one of a plan: that of a rank in a step.
type planned struct {
	plan       *plan.Plan
	version    *Version
	rank, step uint64
}

// count is the number of its records.
func (b planned) count() uint64 { return b.plan.Records(b.rank, b.step) }

// each calls f with the records of a batch in order, some at a time, until one call
// fails.
func (b planned) each(f func(r *recordBatch) error) error { return b.eachFrom(0, f) }

// eachFrom is each without the first records.
func (b planned) eachFrom(skip uint64, f func(r *recordBatch) error) error {
	r := recordBatches.Get().(*recordBatch)
	defer recordBatches.Put(r)
	return b.plan.Each(b.rank, b.step, skip, r.records[:0], func(records []uint64) error {
		r.records = records
		return f(r)
	})
}

// errEnough ends a walk over records.
var errEnough = errors.New("enough")

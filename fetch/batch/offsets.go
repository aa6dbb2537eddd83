package batch

import (
	"context"
	"encoding/binary"

	"rankfs/shuffle/plan"
)

// An Offsets is the record table of a batch: where each record begins, and where
// the last one ends. Any part of it is made when it is asked for.
type Offsets struct {
	of      planned
	records uint64
	length  int64   // of each record, if that is all there is to know
	before  []int64 // or else the marks
}

// Offsets is the record table of a batch.
func (b *Batches) Offsets(ctx context.Context, rank, step uint64) (*Offsets, error) {
	of := b.batch(rank, step)
	o := &Offsets{of: of, records: of.count()}
	if length, ok := b.Version.Index.Uniform(); ok {
		o.length = length
		return o, nil
	}
	m, done := b.Sizes.marks(of)
	defer done()
	if _, err := m.complete(ctx, b.Sizes.walks); err != nil {
		return nil, err
	}
	o.before, _ = m.known()
	return o, nil
}

// Append appends n entries of the table, from one on, as far as there are so many.
func (o *Offsets) Append(ctx context.Context, dst []byte, first, n uint64) ([]byte, error) {
	if first > o.records {
		return dst, nil
	}
	n = min(n, o.records+1-first)
	if o.before == nil {
		for i := first; i < first+n; i++ {
			dst = binary.LittleEndian.AppendUint64(dst, i*uint64(o.length))
		}
		return dst, nil
	}
	mark := min(first/plan.RecordsAtOnce, uint64(len(o.before)-1))
	at, entry := o.before[mark], mark*plan.RecordsAtOnce
	end := first + n
	err := o.of.eachFrom(entry, func(r *recordBatch) error {
		r.extents = o.of.version.Index.AppendExtents(r.extents[:0], r.records)
		for _, e := range r.extents {
			if entry >= first && entry < end {
				dst = binary.LittleEndian.AppendUint64(dst, uint64(at))
			}
			at, entry = at+e.Len, entry+1
		}
		if entry >= end {
			return errEnough
		}
		return ctx.Err()
	})
	if err != nil && err != errEnough {
		return nil, err
	}
	if err == nil && end > o.records { // where the last record ends
		dst = binary.LittleEndian.AppendUint64(dst, uint64(at))
	}
	return dst, nil
}

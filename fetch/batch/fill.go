package batch

import (
	"fmt"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// A fill brings one batch into memory. It is for one goroutine; the goroutines that
// it starts write to places of their own in dst.
type fill struct {
	batches *Batches
	index   *index.Index
	data    *fetch.Dataset // nil: only another node has the source
	dst     []byte
	at      int64         // in dst, where the next record will begin
	stop    func(*Ranges) // at ranges of a chunk, until they were copied
	left    bool          // instead of that; then it ends
}

// next is the room for the next n bytes.
func (f *fill) next(n int64) ([]byte, error) {
	if rest := int64(len(f.dst)) - f.at; n > rest {
		return nil, fmt.Errorf("fill batch %w: %d bytes too many", meta.ErrCorrupt, n-rest)
	}
	room := f.dst[f.at:][:n]
	f.at += n
	return room, nil
}

// assignOffsets finds the places of records in the batch.
func (f *fill) assignOffsets(r *recordBatch) error {
	r.extents, r.ranges = f.index.AppendExtents(r.extents[:0], r.records), r.ranges[:0]
	for i, record := range r.records {
		at := f.at
		if _, err := f.next(r.extents[i].Len); err != nil {
			return err
		}
		r.ranges = append(r.ranges, byteRange{record, 1, at, r.extents[i].Len})
	}
	return nil
}

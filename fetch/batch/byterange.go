package batch

import (
	"context"
	"fmt"

	"rankfs/meta"
)

// A byteRange is a run of bytes that a batch takes from a chunk.
type byteRange struct {
	record, n uint64 // which records
	at, len   int64  // where in the batch
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

// next is the room for the next n bytes.
func (f *fill) next(n int64) ([]byte, error) {
	if rest := int64(len(f.dst)) - f.at; n > rest {
		return nil, fmt.Errorf("fill batch %w: %d bytes too many", meta.ErrCorrupt, n-rest)
	}
	room := f.dst[f.at:][:n]
	f.at += n
	return room, nil
}

// readRanges reads ranges from the source, each to its place in dst, because the cache
// has no room for the chunk or the chunk's owner does not send it.
func (f *fill) readRanges(ctx context.Context, ranges []byteRange, dst []byte) error {
	for _, r := range ranges {
		extents := recordExtents(f.index, r.record, r.n)
		if err := readOnce(ctx, f.data, extents, dst[r.at:r.at+r.len]); err != nil {
			return err
		}
	}
	return nil
}

// join merges ranges that are adjacent both in the records and in dst. It works in
// place.
func join(ranges []byteRange) []byteRange {
	kept := ranges[:1]
	for _, r := range ranges[1:] {
		last := &kept[len(kept)-1]
		if r.record == last.record+last.n && r.at == last.at+last.len {
			last.n, last.len = last.n+r.n, last.len+r.len
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// total is the number of bytes of ranges.
func total(ranges []byteRange) (bytes int64) {
	for _, r := range ranges {
		bytes += r.len
	}
	return bytes
}

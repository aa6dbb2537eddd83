package batch

import (
	"context"

	"rankfs/fetch"
	"rankfs/fetch/index"
)

// A byteRange is a run of bytes that a batch takes from a chunk.
type byteRange struct {
	record, n uint64 // which records
	at, len   int64  // where in the batch
}

// readRanges reads ranges from the source, each to its place in dst, because the cache
// has no room for the chunk or the chunk's owner does not send it.
func readRanges(ctx context.Context, data *fetch.Dataset, x *index.Index, ranges []byteRange, dst []byte) error {
	for _, r := range ranges {
		extents := recordExtents(x, r.record, r.n)
		if err := readOnce(ctx, data, extents, dst[r.at:r.at+r.len]); err != nil {
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

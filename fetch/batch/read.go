package batch

import (
	"context"
	"fmt"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/meta/stall"
	"rankfs/shuffle/plan"
)

// readBytes is how much is read from a source at once, unless a record is longer.
const readBytes = 8 << 20

// readChunk takes a whole chunk from the source.
func readChunk(ctx context.Context, data *fetch.Dataset, x *index.Index, chunk int, dst []byte) error {
	c := x.Chunk(chunk)
	if c.Bytes != int64(len(dst)) {
		return fmt.Errorf("fill chunk %d %w: it has %d bytes, and there is room for %d", chunk, meta.ErrCorrupt, c.Bytes, len(dst))
	}
	if c.Bytes == 0 {
		return nil
	}
	return read(ctx, data, chunkExtents(x, c), dst)
}

// read fills dst with extents, some at a time. They must come to what dst has room for:
// an index may say of a chunk that it has more bytes than its records, or fewer.
func read(ctx context.Context, data *fetch.Dataset, extents []index.Extent, dst []byte) error {
	for len(extents) > 0 {
		n, bytes := 0, int64(0)
		for n < len(extents) && (n == 0 || bytes+extents[n].Len <= readBytes) {
			bytes += extents[n].Len
			n++
		}
		if more := bytes - int64(len(dst)); more > 0 {
			return fmt.Errorf("list of extents %w: %d bytes too many", meta.ErrCorrupt, more)
		}
		if err := readOnce(ctx, data, extents[:n], dst[:bytes]); err != nil {
			return err
		}
		extents, dst = extents[n:], dst[bytes:]
	}
	if len(dst) > 0 {
		return fmt.Errorf("list of extents %w: %d bytes are missing", meta.ErrCorrupt, len(dst))
	}
	return nil
}

// readOnce is a read, and the wait for the source on the clock of the fill.
func readOnce(ctx context.Context, data *fetch.Dataset, extents []index.Extent, dst []byte) error {
	defer stall.Enter(ctx, stall.Source).Leave(int64(len(dst)))
	return data.Read(ctx, extents, dst)
}

// chunkExtents is where the records of a chunk stand, as few extents as it takes.
func chunkExtents(x *index.Index, c index.Chunk) []index.Extent {
	if e, ok := solid(x, c); ok {
		return []index.Extent{e}
	}
	return recordExtents(x, c.First, c.Records)
}

// solid is the one extent that a chunk's records are, if they stand side by side.
func solid(x *index.Index, c index.Chunk) (e index.Extent, ok bool) {
	first, last := x.Extent(c.First), x.Extent(c.First+c.Records-1)
	e = index.Extent{File: first.File, Off: first.Off, Len: c.Bytes}
	return e, last.File == first.File && last.Off+last.Len == first.Off+c.Bytes
}

// recordExtents is where n records from first on stand.
func recordExtents(x *index.Index, first, n uint64) (extents []index.Extent) {
	records := make([]uint64, 0, min(n, plan.RecordsAtOnce))
	for end := first + n; first < end; first += uint64(len(records)) {
		records = records[:0]
		for r := first; r < min(end, first+plan.RecordsAtOnce); r++ {
			records = append(records, r)
		}
		extents = index.Merge(x.AppendExtents(extents, records))
	}
	return extents
}

package batch

import (
	"context"
	"fmt"

	"rankfs/meta"
)

// A piece is a run of bytes that a batch takes from a chunk.
type piece struct {
	record, n uint64 // which records
	at, len   int64  // where in the batch
}

// assignOffsets finds the places of records in the batch.
func (f *fill) assignOffsets(r *recordBatch) error {
	r.extents, r.pieces = f.index.AppendExtents(r.extents[:0], r.records), r.pieces[:0]
	for i, record := range r.records {
		at := f.at
		if _, err := f.next(r.extents[i].Len); err != nil {
			return err
		}
		r.pieces = append(r.pieces, piece{record, 1, at, r.extents[i].Len})
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

// readPieces reads pieces from the source, each to its place in dst, because the cache
// has no room for the chunk or the chunk's owner does not send it.
func (f *fill) readPieces(ctx context.Context, pieces []piece, dst []byte) error {
	for _, p := range pieces {
		extents := recordExtents(f.index, p.record, p.n)
		if err := readOnce(ctx, f.data, extents, dst[p.at:p.at+p.len]); err != nil {
			return err
		}
	}
	return nil
}

// join merges pieces that are adjacent both in the records and in dst. It works in
// place.
func join(pieces []piece) []piece {
	kept := pieces[:1]
	for _, p := range pieces[1:] {
		last := &kept[len(kept)-1]
		if p.record == last.record+last.n && p.at == last.at+last.len {
			last.n, last.len = last.n+p.n, last.len+p.len
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// total is how many bytes pieces have.
func total(pieces []piece) (bytes int64) {
	for _, p := range pieces {
		bytes += p.len
	}
	return bytes
}

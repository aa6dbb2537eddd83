package batch

import (
	"context"
	"fmt"
	"iter"

	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// Fill writes a batch into dst, until the sequence has come to its end. It stops at the
// ranges of each chunk of this node, until these were copied. An error is the last.
func (b *Batches) Fill(ctx context.Context, rank, step uint64, dst []byte) iter.Seq2[*Ranges, error] {
	return func(yield func(*Ranges, error) bool) {
		f := &fill{batches: b, index: b.Version.Index, dst: dst}
		f.stop = func(r *Ranges) { f.left = f.left || !yield(r, nil) }
		if err := f.write(ctx, rank, step); err != nil && !f.left {
			yield(nil, err)
		}
	}
}

// write takes one of the ways to the bytes of a batch.
func (f *fill) write(ctx context.Context, rank, step uint64) error {
	b, v := f.batches, f.batches.Version
	stall.Of(ctx, v.Flows)
	data, err := v.Source.Data(ctx)
	from := v.Source.Elsewhere()
	if err != nil && from == "" {
		return err
	}
	if err == nil {
		f.data = data
	}
	switch {
	case err != nil:
		err = b.batch(rank, step).each(func(r *recordBatch) error { return f.fromOwnerOfCopy(ctx, from, r) })
	case b.View().ByChunk():
		err = f.wholeChunks(ctx, rank, step)
	case b.Chunks != nil:
		err = b.batch(rank, step).each(func(r *recordBatch) error { return f.fromChunks(ctx, r) })
	default:
		err = b.batch(rank, step).each(func(r *recordBatch) error { return f.fromSource(ctx, r) })
	}
	if rest := int64(len(f.dst)) - f.at; err == nil && rest != 0 {
		return fmt.Errorf("fill batch %w: %d bytes are missing", meta.ErrCorrupt, rest)
	}
	return err
}

// fromSource reads records one after the other.
func (f *fill) fromSource(ctx context.Context, r *recordBatch) error {
	r.extents = f.index.AppendExtents(r.extents[:0], r.records)
	bytes := int64(0)
	for _, e := range r.extents {
		bytes += e.Len
	}
	room, err := f.next(bytes)
	if err != nil {
		return err
	}
	return read(ctx, f.data, index.Merge(r.extents), room)
}

// fromOwnerOfCopy receives records from the node that has the source.
func (f *fill) fromOwnerOfCopy(ctx context.Context, owner string, r *recordBatch) error {
	if err := f.assignOffsets(r); err != nil {
		return err
	}
	return f.receive(ctx, owner, join(r.ranges))
}

// wholeChunks takes chunks from a node that read them before, or from the source.
func (f *fill) wholeChunks(ctx context.Context, rank, step uint64) error {
	numbers, err := f.batches.AppendChunks(nil, rank, step)
	if err != nil {
		return err
	}
	for _, number := range numbers {
		room, err := f.next(f.index.ChunkBytes(number))
		if err != nil {
			return err
		}
		if len(room) == 0 || f.receiveKept(ctx, number, room) {
			continue
		}
		if err := readChunk(ctx, f.data, f.index, number, room); err != nil {
			return err
		}
	}
	return nil
}

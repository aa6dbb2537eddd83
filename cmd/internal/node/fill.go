package node

import (
	"context"
	"fmt"

	"rankfs/cache/stall"
	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// readBytes is how much is read at once, unless a record is longer.
const readBytes = 8 << 20

// Fill writes a batch into dst.
func (p *filler) Fill(ctx context.Context, rank, step uint64, dst []byte) error {
	stall.Of(ctx, p.content.flows)
	data, err := p.content.data(ctx)
	from := p.content.elsewhere()
	if err != nil && from == "" {
		return err
	}
	f := &fill{filler: p, data: data, dst: dst}
	switch {
	case err != nil:
		f.data = nil
		err = p.each(rank, step, func(b *recordBatch) error {
			if err := f.assignOffsets(b); err != nil {
				return err
			}
			return f.receive(ctx, from, join(b.pieces))
		})
	case p.View().Step.Unit == meta.UnitChunk:
		err = f.chunks(ctx, rank, step)
	case p.parts != nil:
		err = p.each(rank, step, func(b *recordBatch) error { return f.gather(ctx, b) })
	default:
		err = p.each(rank, step, func(b *recordBatch) error {
			return f.read(ctx, index.Merge(p.content.index.AppendExtents(b.extents[:0], b.records)))
		})
	}
	if rest := int64(len(dst)) - f.at; err == nil && rest != 0 {
		return fmt.Errorf("fill batch %w: %d bytes are missing", meta.ErrCorrupt, rest)
	}
	return err
}

// A fill is a batch on its way into memory.
type fill struct {
	filler *filler
	data   *fetch.Dataset
	dst    []byte
	at     int64 // how much of it is spoken for
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

// read takes extents from the source.
func (f *fill) read(ctx context.Context, extents []index.Extent) error {
	for len(extents) > 0 {
		n, bytes := 0, int64(0)
		for n < len(extents) && (n == 0 || bytes+extents[n].Len <= readBytes) {
			bytes += extents[n].Len
			n++
		}
		room, err := f.next(bytes)
		if err != nil {
			return err
		}
		if err := f.ask(ctx, extents[:n], room); err != nil {
			return err
		}
		extents = extents[n:]
	}
	return nil
}

// ask waits for the source.
func (f *fill) ask(ctx context.Context, extents []index.Extent, dst []byte) error {
	defer stall.Enter(ctx, stall.Source).Leave(int64(len(dst)))
	return f.data.Read(ctx, extents, dst)
}

// chunks takes whole chunks from a node that has them, or from the source.
func (f *fill) chunks(ctx context.Context, rank, step uint64) error {
	numbers, err := f.filler.AppendChunks(nil, rank, step)
	if err != nil {
		return err
	}
	x := f.filler.content.index
	for _, number := range numbers {
		c, at := x.Chunk(number), f.at
		room, err := f.next(c.Bytes)
		if err != nil {
			return err
		}
		if c.Bytes == 0 || f.receiveKept(ctx, number, c, room) {
			continue
		}
		f.at = at
		if err := f.read(ctx, chunkExtents(x, c)); err != nil {
			return err
		}
	}
	return nil
}

// chunkExtents is where the records of a chunk stand, as few extents as it
// takes.
func chunkExtents(x *index.Index, c index.Chunk) []index.Extent {
	if e, ok := solid(x, c); ok {
		return []index.Extent{e}
	}
	return recordExtents(x, c.First, c.Records)
}

// recordExtents is where n records from first on stand.
func recordExtents(x *index.Index, first, n uint64) (extents []index.Extent) {
	records := make([]uint64, 0, min(n, recordsAtOnce))
	for end := first + n; first < end; first += uint64(len(records)) {
		records = records[:0]
		for r := first; r < min(end, first+recordsAtOnce); r++ {
			records = append(records, r)
		}
		extents = index.Merge(x.AppendExtents(extents, records))
	}
	return extents
}

// solid is the one extent that a chunk's records are, if they stand side by
// side.
func solid(x *index.Index, c index.Chunk) (e index.Extent, ok bool) {
	first, last := x.Extent(c.First), x.Extent(c.First+c.Records-1)
	e = index.Extent{File: first.File, Off: first.Off, Len: c.Bytes}
	return e, last.File == first.File && last.Off+last.Len == first.Off+c.Bytes
}

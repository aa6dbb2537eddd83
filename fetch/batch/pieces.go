package batch

import (
	"context"
	"errors"
	"io"

	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// Pieces are what a batch takes from one chunk that this node owns. The fill of the batch
// has stopped at them, and goes on when Copy was called.
type Pieces struct {
	Chunk  int
	fill   *fill
	pieces []piece // in the order of their records
	ctx    context.Context
	err    error
}

// await stops the fill until the pieces were copied.
func (p *Pieces) await(ctx context.Context) error {
	p.ctx, p.err = ctx, errLeft
	p.fill.stop(p)
	return p.err
}

var errLeft = errors.New("the fill of a batch was left before its end")

// Context is done when the fill does not need the chunk any more.
func (p *Pieces) Context() context.Context { return p.ctx }

// Copy copies the pieces out of the chunk, or fails the fill if there is an error. For
// one that wraps meta.ErrNoSpace the chunk is not fetched whole: the source has the pieces.
func (p *Pieces) Copy(chunk io.ReaderAt, tier string, err error) {
	switch {
	case errors.Is(err, meta.ErrNoSpace):
		err = p.fill.readPieces(p.ctx, p.pieces, p.fill.dst)
	case err == nil:
		err = p.copy(chunk, tier)
	}
	p.err = err
}

func (p *Pieces) copy(chunk io.ReaderAt, tier string) error {
	from := stall.Decode
	if tier == "nvme" {
		from = stall.Disk
	}
	defer stall.Enter(p.ctx, from).Leave(total(p.pieces))
	l := layoutOf(p.fill.index, p.Chunk)
	for _, piece := range p.pieces {
		if _, err := chunk.ReadAt(p.fill.dst[piece.at:piece.at+piece.len], l.offset(piece.record)); err != nil {
			return err
		}
	}
	return nil
}

// A layout is where in its slab the records of a chunk begin. It is for one goroutine.
type layout struct {
	index  *index.Index
	chunk  index.Chunk
	whole  index.Extent
	solid  bool
	record uint64 // where that is not the source's layout: the record at off
	off    int64
}

func layoutOf(x *index.Index, number int) *layout {
	l := &layout{index: x, chunk: x.Chunk(number)}
	l.whole, l.solid = solid(x, l.chunk)
	l.record = l.chunk.First
	return l
}

// offset is where a record of the chunk begins, or the chunk ends. It is to be called
// in the order of records.
func (l *layout) offset(record uint64) int64 {
	if record == l.chunk.First+l.chunk.Records {
		return l.chunk.Bytes
	}
	if l.solid {
		return l.index.Extent(record).Off - l.whole.Off
	}
	for ; l.record < record; l.record++ {
		l.off += l.index.Size(l.record)
	}
	return l.off
}

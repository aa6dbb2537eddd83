package batch

import (
	"context"
	"errors"
	"io"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// Ranges are the bytes that a batch takes from one chunk that this node owns. The fill of the batch
// has stopped at them, and goes on when Copy was called.
type Ranges struct {
	Chunk   int
	version *Version
	data    *fetch.Dataset
	dst     []byte      // of the batch
	ranges  []byteRange // in the order of their records
	ctx     context.Context
	err     error
}

// await stops the fill until the ranges were copied.
func (r *Ranges) await(ctx context.Context, stop func(*Ranges)) error {
	r.ctx, r.err = ctx, errLeft
	stop(r)
	return r.err
}

var errLeft = errors.New("the fill of a batch was left before its end")

// Context is done when the fill does not need the chunk any more.
func (r *Ranges) Context() context.Context { return r.ctx }

// Copy copies the ranges out of the chunk, or fails the fill if there is an error. For
// one that wraps meta.ErrNoSpace the chunk is not fetched whole: the source has the ranges.
func (r *Ranges) Copy(chunk io.ReaderAt, tier string, err error) {
	switch {
	case errors.Is(err, meta.ErrNoSpace):
		err = readRanges(r.ctx, r.data, r.version.Index, r.ranges, r.dst)
	case err == nil:
		err = r.copy(chunk, tier)
	}
	r.err = err
}

func (r *Ranges) copy(chunk io.ReaderAt, tier string) error {
	from := stall.Decode
	if tier == "nvme" {
		from = stall.Disk
	}
	defer stall.Enter(r.ctx, from).Leave(total(r.ranges))
	l := layoutOf(r.version.Index, r.Chunk)
	for _, b := range r.ranges {
		if _, err := chunk.ReadAt(r.dst[b.at:b.at+b.len], l.offset(b.record)); err != nil {
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

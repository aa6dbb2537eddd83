package pool

import (
	"context"
	"encoding/binary"
	"fmt"

	"rankfs/meta"
	"rankfs/shuffle/record"
)

// merges reports whether a part is its pieces merged.
func (p *Part) merges() bool { return !p.Whole && p.records.Ordered() }

// sizeOf is the length of a part of records whose pieces are known. One that is combined has fewer
// bytes than these, of one that is a range of keys it is not known before which records are in
// it, and of none how many there are: it is made to be counted.
func (p *Part) sizeOf(ctx context.Context) (n int64, err error) {
	switch {
	case p.Offsets:
		err = p.runs(ctx, func(runs []record.Run) error {
			n, err = p.records.Offsets(ctx, runs, nil)
			return err
		})
	case p.merges() && p.records.Combine != meta.NotCombined:
		err = p.runs(ctx, func(runs []record.Run) error {
			n, err = p.records.Merge(ctx, runs, nil)
			return err
		})
	case p.merges() && p.records.Ranges:
		n, err = p.rangedSize(ctx)
	default:
		n = p.lengthOfPieces()
	}
	return n, err
}

// sizeOfOffsets is the length of the file that says where pieces begin.
func (p *Part) sizeOfOffsets() int64 { return int64(offsetBytes * (len(p.pieces) + 1)) }

// fillOffsets writes where records begin, or the pieces of maps whose records are not known.
func (p *Part) fillOffsets(ctx context.Context, dst []byte) error {
	if p.records.Kind == meta.NoRecords {
		for i, at := range p.begins(p.every()) {
			binary.LittleEndian.PutUint64(dst[offsetBytes*i:], uint64(at))
		}
		return nil
	}
	return p.runs(ctx, func(runs []record.Run) error {
		_, err := p.records.Offsets(ctx, runs, dst)
		return err
	})
}

const offsetBytes = 8

// merge writes the part into dst.
func (p *Part) merge(ctx context.Context, dst []byte) error {
	return p.runs(ctx, func(runs []record.Run) error {
		n, err := p.records.Merge(ctx, runs, dst)
		if err == nil && n != int64(len(dst)) {
			err = fmt.Errorf("part %d %w: it has %d bytes and not %d", p.Number, meta.ErrCorrupt, n, len(dst))
		}
		return err
	})
}

// runs calls f with what the maps have of the part, beside the heap, and again from the
// beginning if a copy was damaged.
func (p *Part) runs(ctx context.Context, f func(runs []record.Run) error) error {
	if p.records.Ranges {
		return p.ranged(ctx, p.wants.slices, f)
	}
	return p.inRuns(ctx, []*column{p.column}, p.stretches(), f)
}

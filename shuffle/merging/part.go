package merging

import (
	"context"
	"encoding/binary"
	"fmt"

	"rankfs/meta"
	"rankfs/shuffle/record"
	"rankfs/shuffle/turns"
)

// Part is the part that is made of the pieces of c, whose records are as the spec says.
func (m *Merges) Part(c Column, by turns.Party, records record.Spec) Part {
	return Part{ranges{merger: merger{c, records, m, by}}}
}

// A Part is what becomes of the pieces of a column.
type Part struct{ ranges }

// Merges reports whether a part is its pieces merged: else these stand one after the other.
func (p *Part) Merges() bool { return p.Records.Ordered() }

// Size is the length of the part. One that is combined has fewer bytes than its pieces, and which
// records a range of keys has is known only when its slices are read: both are merged, or read, to
// find out.
func (p *Part) Size(ctx context.Context) (n int64, err error) {
	switch {
	case p.Merges() && p.Records.Combine != meta.NotCombined:
		err = p.Runs(ctx, func(runs []record.Run) error {
			n, err = p.Records.Merge(ctx, runs, nil)
			return err
		})
	case p.Merges() && p.Records.Ranges:
		n, err = p.rangedSize(ctx)
	default:
		n = p.Is().Bytes()
	}
	return n, err
}

// SizeOfOffsets is the length of the file that says where the part's records begin. They are
// counted by merging, since pieces do not say how many they have. Of maps whose records are not
// known the file says where pieces begin, and there is no error.
func (p *Part) SizeOfOffsets(ctx context.Context) (n int64, err error) {
	if p.Records.Kind == meta.NoRecords {
		return int64(offsetBytes * (len(p.Is().Each) + 1)), nil
	}
	err = p.Runs(ctx, func(runs []record.Run) error {
		n, err = p.Records.Offsets(ctx, runs, nil)
		return err
	})
	return n, err
}

// Offsets writes that file into dst.
func (p *Part) Offsets(ctx context.Context, dst []byte) error {
	if p.Records.Kind == meta.NoRecords {
		for i, at := range p.Is().Begins(p.Is().Every()) {
			binary.LittleEndian.PutUint64(dst[offsetBytes*i:], uint64(at))
		}
		return nil
	}
	return p.Runs(ctx, func(runs []record.Run) error {
		_, err := p.Records.Offsets(ctx, runs, dst)
		return err
	})
}

const offsetBytes = 8

// Merge writes the part into dst.
func (p *Part) Merge(ctx context.Context, dst []byte) error {
	return p.Runs(ctx, func(runs []record.Run) error {
		n, err := p.Records.Merge(ctx, runs, dst)
		if err == nil && n != int64(len(dst)) {
			err = fmt.Errorf("part %d %w: it has %d bytes and not %d", p.Is().Number, meta.ErrCorrupt, n, len(dst))
		}
		return err
	})
}

// Runs calls f with what the maps have of the part, beside the heap, and again from the
// beginning if a copy was damaged.
func (p *Part) Runs(ctx context.Context, f func(runs []record.Run) error) error {
	if p.Records.Ranges {
		return p.ranged(ctx, p.Wants.slices, f)
	}
	return p.inRuns(ctx, []Column{p.Column}, stretches(p.Column), f)
}

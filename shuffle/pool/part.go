package pool

import (
	"context"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/gathering"
	"rankfs/shuffle/merging"
	"rankfs/shuffle/record"
)

// A Part is one part of a stage in one generation: the pieces of the maps that were committed
// when it was opened.
//
//   - Its bytes follow from the bytes of these maps and the spec alone. They are the same on
//     every node, and whichever copies the pieces come from.
//   - Which pieces it has, and its length, is found by measure before any caller gets it, and
//     does not change. Only the copy that a piece is taken from may.
//   - It holds no bytes: Fill writes them where it is told, and may be called again.
type Part struct {
	column  column
	merged  merging.Part // what becomes of its pieces
	Offsets bool         // where its records begin, or its maps' pieces
	size    int64
}

// newPart is the part that these pieces are, of records as a spec says.
func newPart(p column, s record.Spec) *Part {
	return &Part{column: p, merged: p.all.merges.Part(p, p.Party, s)}
}

// rangeOf makes p one of the key ranges of a stage with these maps.
func (p *Part) rangeOf(spec meta.Stage, maps state.Maps) {
	p.merged.Range(merging.Stage{Number: p.column.Stage, Generation: p.column.Generation, Maps: maps, Parts: spec.Parts, Slices: spec.Slices(), Slice: p.column.slice})
}

// By is the number of its job, and the weight by which work for it counts.
func (p *Part) By() (job, weight uint64) { return p.column.Party.Job, p.column.Party.Weight }

// Stage is the number of its stage.
func (p *Part) Stage() uint64 { return p.column.Stage }

// Size is the length of the part.
func (p *Part) Size() int64 { return p.size }

// A Generation is a stage between two resets.
type Generation struct {
	agreed        *agreed
	stage, number uint64
}

// Of is the generation that the part is of.
func (p *Part) Of() Generation {
	return Generation{p.column.all.copies.agreed, p.column.Stage, p.column.Generation}
}

// Current reports whether the stage is there, and was not reset since.
func (g Generation) Current() bool {
	for _, j := range g.agreed.config.State.PoolJobs() {
		for _, is := range g.agreed.config.State.Stages(j.Number) {
			if is.Number == g.stage {
				return is.Generation == g.number
			}
		}
	}
	return false
}

// measure finds how long the pieces are, what they hash to, and how long the part is.
func (p *Part) measure(ctx context.Context) error {
	if err := p.column.Lost(); err != nil {
		return err
	}
	name := p.withPieces()
	known, ok := p.column.all.Measured.Get(name)
	if !ok {
		var err error
		if known, err = p.measureNow(ctx); err != nil {
			return err
		}
		p.column.all.Measured.Put(name, known)
	}
	p.column.Each, p.merged.Wants, p.size = known.Pieces, known.Wants, known.Size
	if name != p.Name() {
		p.size, _ = p.merged.SizeOfOffsets(ctx) // of pieces, which are known
	}
	return nil
}

// measureNow measures the part, as no measurement is remembered.
func (p *Part) measureNow(ctx context.Context) (gathering.Measurement, error) {
	var err error
	if p.merged.Records.Ranges {
		p.merged.Wants, err = p.merged.Find(ctx)
	} else {
		err = p.column.Measure(ctx)
	}
	if err != nil {
		return gathering.Measurement{}, err
	}
	size := p.column.Bytes()
	switch {
	case p.merged.Records.Kind == meta.NoRecords:
	case p.Offsets:
		size, err = p.merged.SizeOfOffsets(ctx)
	default:
		size, err = p.merged.Size(ctx)
	}
	return gathering.Measurement{Pieces: p.column.Each, Wants: p.merged.Wants, Size: size}, err
}

// Name is the part's.
func (p *Part) Name() gathering.Name {
	name := p.column.Name()
	if p.Offsets {
		name[3] = 2
	}
	return name
}

// withPieces names the part whose pieces are to be known: that of offsets, if they are these of
// pieces, is the part itself.
func (p *Part) withPieces() gathering.Name {
	if p.merged.Records.Kind == meta.NoRecords {
		return p.column.Name()
	}
	return p.Name()
}

// Fill writes the part into dst, whose length is Size: the maps' pieces in the order of
// the maps, whichever nodes they come from, or if the records have an order these merged.
func (p *Part) Fill(ctx context.Context, dst []byte) (err error) {
	switch {
	case p.Offsets:
		err = p.merged.Offsets(ctx, dst)
	case p.merged.Merges():
		err = p.merged.Merge(ctx, dst)
	default:
		err = p.column.Gather(ctx, p.column.Every(), dst)
	}
	if err != nil {
		p.column.all.Measured.Forget(p.Name())
	}
	return err
}

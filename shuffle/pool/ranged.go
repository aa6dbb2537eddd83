package pool

import (
	"cmp"
	"context"
	"slices"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/record"
)

// A map whose parts are ranges of keys has pieces that are no parts: its slices, and after
// them their samples. Those of all maps of the stage say which keys a part has.

// A wanted says which slices of which maps may have records of a part, whose keys are those.
type wanted struct {
	keys   record.Range
	slices []slice // by number, and those of one number by map
}

// A slice is one of a map of the part, which the range may cut at its ends.
type slice struct {
	number, of uint32
	from, to   bool
}

// cut reports whether it is to be seen which of its records belong to the part.
func (s slice) cut() bool { return s.from || s.to }

// keysOf is where the range cuts a slice.
func (w wanted) keysOf(s slice) (r record.Range) {
	if s.from {
		r.From = w.keys.From
	}
	if s.to {
		r.To = w.keys.To
	}
	return r
}

// The ranges of a part that is one of keys are the slices of maps that have something of it. Of
// another part there are none.
type ranges struct {
	merger
	stage state.Maps // all of the stage
	parts uint64     // of the stage
	cuts  uint64     // slices that each map has
	wants wanted     // of the maps of the part
}

// of has a part be one of the ranges of a stage with these maps.
func (p *ranges) of(spec meta.Stage, maps state.Maps) {
	p.stage, p.cuts, p.parts = maps, spec.Slices(), spec.Parts
}

// bySlice are the columns that have the slices of a number each.
func (p *ranges) bySlice(ctx context.Context, all []slice) (parts []*column, err error) {
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].number == all[0].number {
			n++
		}
		var maps []state.Commit
		for _, s := range all[:n] {
			maps = append(maps, p.Maps.At(int(s.of)))
		}
		one, err := p.sliced(ctx, uint64(all[0].number), state.MapsOf(maps...))
		if err != nil {
			return nil, err
		}
		parts, all = append(parts, one), all[n:]
	}
	return parts, nil
}

// ranged calls f with the records that some slices have of the part, those of a map a run; it
// may do so again.
func (p *ranges) ranged(ctx context.Context, some []slice, f func(runs []record.Run) error) error {
	parts, err := p.bySlice(ctx, some)
	if err != nil {
		return err
	}
	of, at := make([][]stretch, p.Maps.Len()), 0
	for _, one := range parts {
		for i := range one.pieces {
			is := some[at]
			of[is.of] = append(of[is.of], stretch{one, i, p.wants.keysOf(is)})
			at++
		}
	}
	return p.inRuns(ctx, parts, slices.DeleteFunc(of, func(run []stretch) bool { return run == nil }), f)
}

// rangedSize is the length of the part. Slices are read that the range may cut; of the
// others it is known how long they are.
func (p *ranges) rangedSize(ctx context.Context) (n int64, err error) {
	var cut, whole []slice
	for _, s := range p.wants.slices {
		if s.cut() {
			cut = append(cut, s)
		} else {
			whole = append(whole, s)
		}
	}
	parts, err := p.bySlice(ctx, whole)
	if err != nil {
		return 0, err
	}
	known := int64(0)
	for _, one := range parts {
		known += one.lengthOfPieces()
	}
	err = p.ranged(ctx, cut, func(runs []record.Run) error {
		n = known
		for _, run := range runs {
			for {
				b, some, err := run.Next()
				if err != nil {
					return err
				}
				if !some {
					break
				}
				n += int64(len(b))
			}
		}
		return nil
	})
	return n, err
}

// wanted looks what the samples of all maps of the stage say of the part.
func (p *ranges) wanted(ctx context.Context) (w wanted, err error) {
	d, err := p.division(ctx)
	if err != nil {
		return w, err
	}
	keys, some := record.RangeOf(d.bounds, p.Number)
	if !some {
		return w, nil
	}
	w.keys = keys
	before := p.stage.Len() // maps that stand before those of the part
	if p.Maps.Len() > 0 {
		before = p.stage.Between(0, p.Maps.At(0).Map).Len() - 1
	}
	for i := range p.Maps.Len() {
		span := d.spans[before+i][p.Number-d.first]
		for number := span.First; number < span.End; number++ {
			from, to := span.Cuts(number)
			w.slices = append(w.slices, slice{uint32(number), uint32(i), from, to})
		}
	}
	slices.SortFunc(w.slices, func(a, b slice) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.of, b.of)) })
	return w, nil
}

package pool

import (
	"context"
	"slices"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/record"
)

// A map whose parts are ranges of keys has pieces that are no parts: its slices, and after
// them their samples. Those of all maps of the stage say which keys a part has.

// sliced is a part that has one of the pieces of some maps.
func (p *Part) sliced(ctx context.Context, piece uint64, maps state.Maps) (*Part, error) {
	one := &Part{Stage: p.Stage, Generation: p.Generation, Number: piece, Maps: maps, pool: p.pool, files: p.files}
	return one, one.measurePieces(ctx)
}

// ranged calls f with the records that maps have of the part, each slice a run.
func (p *Part) ranged(ctx context.Context, f func(runs [][]byte) error) error {
	w, err := p.wants(ctx)
	if err != nil {
		return err
	}
	all := make([]*Part, len(w.slices))
	for i, slice := range w.slices {
		if all[i], err = p.sliced(ctx, slice, state.MapsOf(w.maps[slice]...)); err != nil {
			return err
		}
	}
	return p.inMemory(ctx, all, func(pieces [][][]byte) error {
		of := make(map[uint64][][]byte) // by map, its slices one after the other
		for i, one := range all {
			for k, c := range one.Maps.All() {
				b, err := p.records.Cut(pieces[i][k], w.keys)
				if err != nil {
					return err
				}
				of[c.Map] = append(of[c.Map], b)
			}
		}
		var runs [][]byte
		for _, c := range p.Maps.All() {
			runs = append(runs, of[c.Map]...)
		}
		return f(runs)
	})
}

// A wanted says which slices of which maps may have records of a part, whose keys are those.
type wanted struct {
	keys   record.Range
	slices []uint64 // rising
	maps   map[uint64][]state.Commit
}

// wants looks at the samples of all maps of the stage.
func (p *Part) wants(ctx context.Context) (wanted, error) {
	w := wanted{maps: make(map[uint64][]state.Commit)}
	samples, err := p.sliced(ctx, p.cuts, p.all)
	if err != nil {
		return w, err
	}
	err = p.inMemory(ctx, []*Part{samples}, func(pieces [][][]byte) error {
		var of []record.Samples
		var sizes []int64
		for i, b := range pieces[0] {
			if !record.Samples(b).Are(p.cuts) {
				return meta.Worded(meta.ErrCorrupt, "map %d has samples of %d bytes, and not those of its slices", p.all.At(i).Map, len(b))
			}
			of = append(of, b)
			sizes = append(sizes, p.all.At(i).Size-int64(len(b)))
		}
		keys, some := record.RangeOf(p.records.Bounds(of, sizes, p.parts), p.Number)
		if !some {
			return nil
		}
		w.keys = keys
		before := p.all.Len() // maps that stand before those of the part
		if p.Maps.Len() > 0 {
			before = p.all.Between(0, p.Maps.At(0).Map).Len() - 1
		}
		for i, c := range p.Maps.All() {
			from, to := p.records.Slices(of[before+i], keys)
			for slice := from; slice < to; slice++ {
				w.maps[uint64(slice)] = append(w.maps[uint64(slice)], c)
			}
		}
		for slice := range w.maps {
			w.slices = append(w.slices, slice)
		}
		slices.Sort(w.slices)
		return nil
	})
	return w, err
}

// ranges has a part be a range of keys, of those of all maps of its stage.
func (p *Part) ranges(spec meta.Stage, all state.Maps) {
	p.all, p.cuts, p.parts = all, spec.Slices(), spec.Parts
}

package merging

import (
	"context"
	"slices"

	"rankfs/meta/state"
	"rankfs/shuffle/record"
)

// A map whose parts are ranges of keys has pieces that are no parts: its slices, and after
// them their samples. Those of all maps of the stage say which keys a part has.

// A Wanted is a range of keys, and the slices of maps that may have records of it.
type Wanted struct {
	keys   record.Range
	slices []slice // by number, and those of one number by map
}

// A slice is one of a map of the part, which the range may cut at its ends.
type slice struct {
	number, of uint32
	from, to   bool
}

// cut reports whether only some of the slice's records may be of the range, so that they are
// looked at.
func (s slice) cut() bool { return s.from || s.to }

// Len is the number of the slices.
func (w Wanted) Len() int { return len(w.slices) }

// Count adds for each map the number of its slices.
func (w Wanted) Count(perMap []int64) {
	for _, s := range w.slices {
		perMap[s.of]++
	}
}

// keysOf is where the range cuts a slice.
func (w Wanted) keysOf(s slice) (r record.Range) {
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
	stage *Stage // nil: it is no range
	Wants Wanted // of the maps of the part
}

// A Stage is one whose parts are ranges of keys. One that was reset is another Stage.
type Stage struct {
	Number, Generation uint64
	Maps               state.Maps // all of them
	Parts              uint64
	Slices             uint64 // that each map has
	// Slice is a column that has one of the pieces of some maps, and is measured.
	Slice func(ctx context.Context, piece uint64, maps state.Maps) (Column, error)
}

// Range has a part be one of the ranges of a stage.
func (p *ranges) Range(s Stage) { p.stage = &s }

// bySlice are the columns that have the slices of a number each.
func (p *ranges) bySlice(ctx context.Context, all []slice) (parts []Column, err error) {
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].number == all[0].number {
			n++
		}
		var maps []state.Commit
		for _, s := range all[:n] {
			maps = append(maps, p.Is().Maps.At(int(s.of)))
		}
		one, err := p.stage.Slice(ctx, uint64(all[0].number), state.MapsOf(maps...))
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
	of, at := make([][]stretch, p.Is().Maps.Len()), 0
	for _, one := range parts {
		for i := range one.Is().Each {
			is := some[at]
			of[is.of] = append(of[is.of], stretch{one, i, p.Wants.keysOf(is)})
			at++
		}
	}
	return p.inRuns(ctx, parts, slices.DeleteFunc(of, func(run []stretch) bool { return run == nil }), f)
}

// rangedSize is the length of the part. Slices are read that the range may cut; of the
// others it is known how long they are.
func (p *ranges) rangedSize(ctx context.Context) (n int64, err error) {
	var cut, whole []slice
	for _, s := range p.Wants.slices {
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
		known += one.Is().Bytes()
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

package merging

import (
	"cmp"
	"context"
	"slices"

	"rankfs/meta"
	"rankfs/shuffle/record"
)

// Find finds what the samples of all maps of the stage say of the part.
func (p *ranges) Find(ctx context.Context) (w Wanted, err error) {
	d, err := p.division(ctx)
	if err != nil {
		return w, err
	}
	keys, some := record.RangeOf(d.bounds, p.Is().Number)
	if !some {
		return w, nil
	}
	w.keys = keys
	before := p.stage.Maps.Len() // maps that stand before those of the part
	if p.Is().Maps.Len() > 0 {
		before = p.stage.Maps.Between(0, p.Is().Map(0)).Len() - 1
	}
	for i := range p.Is().Maps.Len() {
		span := d.spans[before+i][p.Is().Number-d.first]
		for number := span.First; number < span.End; number++ {
			from, to := span.Cuts(number)
			w.slices = append(w.slices, slice{uint32(number), uint32(i), from, to})
		}
	}
	slices.SortFunc(w.slices, func(a, b slice) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.of, b.of)) })
	return w, nil
}

// division divides the stage by the samples of all its maps: for the part; for all parts, and
// remembered, if they are not too many.
func (p *ranges) division(ctx context.Context) (*division, error) {
	if uint64(p.stage.Maps.Len())*p.stage.Parts > MaxSpans {
		return p.sampled(ctx, p.Is().Number, 1)
	}
	return p.on.divisions.get(ctx, divisionName{p.stage.Number, p.stage.Generation}, func() (*division, error) { return p.sampled(ctx, 0, p.stage.Parts) })
}

// sampled looks at the samples of all maps of the stage: of as many maps at a time as memory has
// room for, and of the last ones once, as it is known by them where parts begin.
func (p *ranges) sampled(ctx context.Context, first, n uint64) (*division, error) {
	maps := p.stage.Maps.Len()
	d := &division{first: first, parts: n, spans: make([][]record.Span, maps), sizes: make([]int64, maps), slices: p.stage.Slices}
	if maps == 0 {
		return d, nil
	}
	var room []byte
	sampler, err := p.Records.Sampler(maps, p.stage.Slices, func(n int64) (_ []byte, err error) {
		room, err = p.memory(max(1, n))
		return room, err
	})
	if err != nil {
		return nil, err
	}
	defer free(room)
	take := func(i int, m record.Samples) {
		d.sizes[i] = p.stage.Maps.At(i).Size - int64(len(m))
		sampler.Add(i, m, d.sizes[i])
	}
	span := func(i int, m record.Samples) { d.spans[i] = p.Records.Spans(m, d.bounds, first, n) }
	some := max(1, int(p.on.room.large()/record.SamplesBytes(p.stage.Slices)))
	last := (maps - 1) / some * some
	for from := 0; from < last; from += some {
		if err := p.samples(ctx, from, from+some, each(take)); err != nil {
			return nil, err
		}
	}
	err = p.samples(ctx, last, maps, func(from int, all []record.Samples) {
		each(take)(from, all)
		d.bounds = sampler.Bounds(p.stage.Parts)
		each(span)(from, all)
	})
	for from := 0; from < last && err == nil; from += some {
		err = p.samples(ctx, from, from+some, each(span))
	}
	return d, err
}

// each turns a function of one map into one of all maps from one on.
func each(one func(i int, m record.Samples)) func(from int, all []record.Samples) {
	return func(from int, all []record.Samples) {
		for i, m := range all {
			one(from+i, m)
		}
	}
}

// samples calls f with those of the maps of a stage from one to before another.
func (p *ranges) samples(ctx context.Context, from, to int, f func(from int, all []record.Samples)) error {
	one, err := p.stage.Slice(ctx, p.stage.Slices, p.stage.Maps.Between(p.stage.Maps.At(from).Map, p.stage.Maps.At(to-1).Map))
	if err != nil {
		return err
	}
	return p.inMemory(ctx, []Column{one}, func(pieces held) error {
		var all []record.Samples
		for i, b := range pieces[one] {
			if int64(len(b)) != record.SamplesBytes(p.stage.Slices) {
				return meta.Worded(meta.ErrCorrupt, "map %d has samples of %d bytes, and not those of its slices", p.stage.Maps.At(from+i).Map, len(b))
			}
			all = append(all, b)
		}
		f(from, all)
		return nil
	})
}

// Weights are about how many bytes the parts of the stage have.
func (p *ranges) Weights(ctx context.Context) ([]int64, error) {
	d, err := p.division(ctx)
	if err != nil {
		return nil, err
	}
	return d.weights(), nil
}

package merging

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"rankfs/meta"
	"rankfs/shuffle/record"
)

// A division says where parts that are ranges of keys begin, and what each map of the stage
// has of some of them.
type division struct {
	bounds [][]byte
	first  uint64          // part
	parts  uint64          // from that on
	spans  [][]record.Span // by map, and by part from the first on
	sizes  []int64         // of a map's slices together
	slices uint64          // of each map
}

// weights are the bytes of parts, about, from the first on: the slices of a map are of
// about one size, and of one that may be in several parts each has as much.
func (d *division) weights() []int64 {
	all, in := make([]int64, d.parts), make([]int64, d.slices)
	for i, spans := range d.spans {
		clear(in)
		for _, is := range spans {
			for slice := is.First; slice < is.End; slice++ {
				in[slice]++
			}
		}
		for p, is := range spans {
			for slice := is.First; slice < is.End; slice++ {
				all[p] += d.sizes[i] / int64(d.slices) / in[slice]
			}
		}
	}
	return all
}

// MostSpans bounds those of all divisions that are remembered: 8 MiB.
const MostSpans = 1 << 20

// divisions are the divisions of stages whose parts are read, so that samples are taken once for all
// parts. The lock guards the fields below it; samples are taken without it.
type divisions struct {
	mu sync.Mutex
	of map[divisionName]*taken
	in []divisionName // those that are there, from the oldest on
	n  int            // of their spans
}

// A divisionName is a stage, and how often it was reset.
type divisionName [2]uint64

// A taken is a division once done is closed, or why there is none.
type taken struct {
	done chan struct{}
	is   *division
	err  error
}

// get is a division that is there, or what take takes. A caller that comes meanwhile waits for that.
func (d *divisions) get(ctx context.Context, name divisionName, take func() (*division, error)) (*division, error) {
	for {
		one, mine := d.begin(name)
		if mine {
			one.is, one.err = take()
			d.end(name, one)
			return one.is, one.err
		}
		select {
		case <-one.done:
		case <-ctx.Done():
			return nil, cause(ctx)
		}
		switch err := one.err; {
		case err == nil:
			return one.is, nil
		case !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded): // these were of the caller that took it
			return nil, err
		case ctx.Err() != nil:
			return nil, cause(ctx)
		}
	}
}

func (d *divisions) begin(name divisionName) (one *taken, mine bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one := d.of[name]; one != nil {
		return one, false
	}
	if d.of == nil {
		d.of = make(map[divisionName]*taken)
	}
	one = &taken{done: make(chan struct{})}
	d.of[name] = one
	return one, true
}

func (d *divisions) end(name divisionName, one *taken) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(one.done)
	if one.err != nil {
		delete(d.of, name)
		return
	}
	d.in, d.n = append(d.in, name), d.n+one.spans()
	for d.n > MostSpans {
		d.n -= d.of[d.in[0]].spans()
		delete(d.of, d.in[0])
		d.in = d.in[1:]
	}
}

// spans are the number of spans of a division.
func (t *taken) spans() (n int) {
	for _, of := range t.is.spans {
		n += len(of)
	}
	return max(1, n)
}

// division divides the stage by the samples of all its maps: for the part; for all parts, and
// remembered, if they are not too many.
func (p *ranges) division(ctx context.Context) (*division, error) {
	if uint64(p.stage.Maps.Len())*p.stage.Parts > MostSpans {
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

// cause is why a context of a request has ended.
func cause(ctx context.Context) error { return cmp.Or(ctx.Err(), context.Canceled) }

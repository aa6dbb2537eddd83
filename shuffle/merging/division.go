package merging

import (
	"cmp"
	"context"
	"errors"
	"sync"

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

// MaxSpans bounds those of all divisions that are remembered: 8 MiB.
const MaxSpans = 1 << 20

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
	for d.n > MaxSpans {
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

// cause is why a context of a request has ended.
func cause(ctx context.Context) error { return cmp.Or(ctx.Err(), context.Canceled) }

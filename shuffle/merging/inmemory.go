package merging

import (
	"context"

	"rankfs/shuffle/record"
)

// inRuns calls f with runs that have these stretches of some columns: at once if memory has room
// for that, else in portions. What f was given is right if there is no error. It is called again,
// with all runs from their beginning, if a copy was damaged.
func (p *merger) inRuns(ctx context.Context, parts []Column, of [][]stretch, f func(runs []record.Run) error) error {
	lent := lend(parts)
	defer lent.give()
	if lent.left > p.on.room.large() {
		return p.inPortions(ctx, of, lent.pieces, f)
	}
	return p.atOnce(ctx, lent, func(all held) error {
		runs := make([]record.Run, len(of))
		for i, some := range of {
			runs[i].Map = some[0].of.Is().Map(some[0].i)
			for _, s := range some {
				b, err := p.Records.Cut(all[s.of][s.i], s.keys)
				if err != nil {
					return err
				}
				runs[i].Buffers = append(runs[i].Buffers, b)
			}
		}
		return f(runs)
	})
}

// inMemory calls f with the pieces of some columns, which are checked: where
// they are in memory of this node, else in memory beside the heap.
func (p *merger) inMemory(ctx context.Context, parts []Column, f func(all held) error) error {
	lent := lend(parts)
	defer lent.give()
	return p.atOnce(ctx, lent, f)
}

// atOnce brings the pieces that are not lent into memory beside the heap, all at once, and calls f
// with all. Room is waited for before a processor, and both are held until f returns.
func (p *merger) atOnce(ctx context.Context, lent lent, f func(all held) error) error {
	if n := lent.left; n > 0 {
		give, err := p.hold(ctx, n)
		if err != nil {
			return err
		}
		defer give()
		b, err := p.memory(n)
		if err != nil {
			return err
		}
		defer free(b)
		for _, one := range lent.parts {
			left := lent.lacks[one]
			begin := one.Is().Begins(left)
			end := begin[len(begin)-1]
			if err := one.Gather(ctx, left, b[:end]); err != nil {
				return err
			}
			for _, k := range left {
				lent.pieces[one][k] = b[begin[k]:begin[k+1]:begin[k+1]]
			}
			b = b[end:]
		}
	}
	done, err := p.work(ctx, lent.bytes())
	if err != nil {
		return err
	}
	defer done()
	return p.guard(func() error { return f(lent.pieces) })
}

// bytes are the bytes of all pieces.
func (l lent) bytes() (n int64) {
	for _, one := range l.parts {
		n += one.Is().Bytes()
	}
	return n
}

// lent are the pieces of columns that are in memory of this node until they are given back.
type lent struct {
	parts  []Column
	pieces held
	lacks  map[Column][]int // those that are not
	left   int64            // bytes of these
	give   func()
}

func lend(parts []Column) lent {
	all := lent{parts, make(held, len(parts)), make(map[Column][]int), 0, func() {}}
	for _, one := range parts {
		here, give := one.Lend()
		for k := range here {
			if here[k] == nil {
				all.lacks[one] = append(all.lacks[one], k)
				all.left += one.Is().Each[k].Size
			}
		}
		all.pieces[one] = here
		before := all.give
		all.give = func() { give(); before() }
	}
	return all
}

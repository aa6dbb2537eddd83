package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"rankfs/meta/fault"
)

// inMemory calls f with the pieces of some parts of the same maps, which are checked: where
// they are in memory of this node, else in memory beside the heap.
func (p *Part) inMemory(ctx context.Context, parts []*Part, f func(pieces [][][]byte) error) error {
	all, left, n := make([][][]byte, len(parts)), make([][]int, len(parts)), int64(0)
	for i, one := range parts {
		lent, give := one.lent()
		defer give()
		for k := range lent {
			if lent[k] == nil {
				left[i] = append(left[i], k)
				n += one.pieces[k].n
			}
		}
		all[i] = lent
	}
	if n > 0 {
		room := p.pool.merging
		if err := room.take(ctx, n); err != nil {
			return fmt.Errorf("part %d, whose merge waits for others: %w", p.Number, err)
		}
		defer room.give(n)
		b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return fmt.Errorf("memory to merge part %d in, %d bytes: %w", p.Number, n, err)
		}
		defer unmap(b)
		for i, one := range parts {
			begin := one.begins(left[i])
			if err := one.gather(ctx, left[i], b[:begin[len(one.pieces)]]); err != nil {
				return err
			}
			for _, k := range left[i] {
				all[i][k] = b[begin[k]:begin[k+1]:begin[k+1]]
			}
			b = b[begin[len(one.pieces)]:]
		}
	}
	err := fault.Guard(func() error { return f(all) })
	if at := new(fault.Error); errors.As(err, &at) {
		err = fmt.Errorf("merge part %d: %w (%w)", p.Number, unix.EIO, err)
	}
	return err
}

// lent are the pieces that are in memory of this node, and are right, until they are given
// back; nil for one that is not.
func (p *Part) lent() (pieces [][]byte, give func()) {
	pieces = make([][]byte, len(p.pieces))
	var open []*openedMap
	if len(pieces) > mostOpened || p.files == nil { // a little of each, which would be opened for it and closed
		return pieces, func() {}
	}
	for i := range pieces {
		if c := p.at(i); slices.ContainsFunc(c.Nodes, p.own) {
			if b, m := p.files.lend(p.request([]int{i}), c, p.pieces[i]); m != nil {
				pieces[i], open = b, append(open, m)
			}
		}
	}
	return pieces, func() {
		for _, m := range open {
			p.files.open.give(m)
		}
	}
}

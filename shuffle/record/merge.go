package record

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"rankfs/meta"
)

// A Run has the records of a part in a map, in buffers of whole records that stand one after the other:
// those that are at hand, and after them, if there is More, what that gives until it gives none.
// A buffer that it gave may be overwritten once it has given two more.
type Run struct {
	Map     uint64 // its number
	Buffers [][]byte
	More    func() (buffer []byte, some bool, err error)
}

// Next takes the next buffer out of the run.
func (r *Run) Next() (buffer []byte, some bool, err error) {
	switch {
	case len(r.Buffers) > 0:
		buffer, r.Buffers = r.Buffers[0], r.Buffers[1:]
		return buffer, true, nil
	case r.More != nil:
		return r.More()
	}
	return nil, false, nil
}

// Merge merges runs, each sorted and combined by Divide, into b, and returns how many bytes
// that are. Without b it only counts them. Of records with one key those of the run that
// stands first come first.
func (s Spec) Merge(ctx context.Context, runs []Run, b []byte) (n int64, err error) {
	out := output{bytes: b}
	err = s.merge(ctx, runs, &out)
	return int64(out.at), err
}

// MergeSome is Merge of some bytes alone, of a part that is as long as they need.
func (s Spec) MergeSome(ctx context.Context, runs []Run, some Windows) error {
	out := output{some: some}
	err := s.merge(ctx, runs, &out)
	if err == nil && len(out.some) > 0 {
		err = fmt.Errorf("part %w: it has %d bytes, and is to have %d or more", meta.ErrCorrupt, out.at, out.some[0].end())
	}
	return err
}

// Offsets writes into b where the records of a part begin, and where the last ends, each in
// offsetBytes, little-endian; and returns how many bytes that are. Without b it only counts
// them. A part without an order is its runs, one after the other.
func (s Spec) Offsets(ctx context.Context, runs []Run, b []byte) (n int64, err error) {
	err = s.Begins(ctx, runs, func(at uint64) {
		if b != nil {
			binary.LittleEndian.PutUint64(b[n:], at)
		}
		n += offsetBytes
	})
	return n, err
}

// Begins calls mark with where each record of a part begins, and with where the last ends.
func (s Spec) Begins(ctx context.Context, runs []Run, mark func(at uint64)) (err error) {
	var out output
	out.each = func([]byte) { mark(out.at) }
	if s.Ordered() {
		err = s.merge(ctx, runs, &out)
	} else {
		err = s.follow(ctx, runs, &out)
	}
	mark(out.at)
	return err
}

const offsetBytes = 8

// follow puts the records of runs as they stand.
func (s Spec) follow(ctx context.Context, runs []Run, out *output) error {
	for _, run := range runs {
		for {
			buffer, some, err := run.Next()
			if err != nil {
				return err
			}
			if !some {
				break
			}
			for number := 0; len(buffer) > 0; number++ {
				if number%looks == 0 && ctx.Err() != nil {
					return ctx.Err()
				}
				r, err := s.first(buffer)
				if err != nil {
					return damaged(run, err)
				}
				out.put(nil, r)
				buffer = buffer[len(r):]
			}
		}
	}
	return nil
}

func damaged(run Run, err error) error {
	return fmt.Errorf("what map %d has of a part %w: %w", run.Map, meta.ErrCorrupt, err)
}

// merge puts the records of sorted runs in their order.
func (s Spec) merge(ctx context.Context, runs []Run, out *output) error {
	if len(runs) == 0 {
		return nil
	}
	m := merge{Spec: s, heads: make([]head, len(runs))}
	c := combiner{Spec: s, merges: true, out: out}
	for i, run := range runs {
		m.heads[i].more = run
	}
	if err := m.build(); err != nil {
		return err
	}
	for number := 0; ; number++ {
		first := m.losers[0].run
		h := &m.heads[first]
		if len(h.rest) == 0 {
			break
		}
		if number%looks == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if out.full() {
				return nil
			}
		}
		if err := c.take(h.record, h.key); err != nil {
			return fmt.Errorf("record %d of what map %d has of the part: %w", h.number, h.more.Map, err)
		}
		if err := m.advance(first); err != nil {
			return err
		}
	}
	c.end()
	return nil
}

// A merge is a tree of losers: a leaf is the head of a run, an inner node has the run that
// lost there against the one that went on, and losers[0] is the run that won all.
type merge struct {
	Spec
	heads  []head
	losers []contender
}

// A head is the next record of a run.
type head struct {
	rest   []byte // of a buffer that was not merged yet, from the record on; empty: the run has ended
	more   Run    // that comes after
	record []byte
	number uint64 // of the record in the run
	key    []byte
}

// A contender is the head of a run in the tree, which has the prefix of its key: mostly that
// is all there is to look at.
type contender struct {
	prefix uint64
	run    int
}

// next finds the record with which the rest of a run begins.
func (m *merge) next(run int) (contender, error) {
	h := &m.heads[run]
	for len(h.rest) == 0 {
		buffer, some, err := h.more.Next()
		if err != nil {
			return contender{}, err
		}
		if !some {
			return contender{math.MaxUint64, run}, nil
		}
		h.rest = buffer
	}
	r, err := m.first(h.rest)
	if err != nil {
		return contender{}, damaged(h.more, err)
	}
	h.record, h.key = r, m.key(r)
	return contender{m.prefix(h.key), run}, nil
}

// advance goes on to the next record of the run that won all, and plays its matches.
func (m *merge) advance(run int) error {
	h := &m.heads[run]
	h.rest = h.rest[len(h.record):]
	h.number++
	winner, err := m.next(run)
	if err != nil {
		return err
	}
	m.losers[0] = m.play(winner, (run+len(m.heads))/2)
	return nil
}

// play plays a contender against the loser of a node, and the winner there against that of the
// next, up to the root, and returns the one that has won all. Which one wins a processor cannot
// guess, and a wrong guess costs it more time than to exchange numbers, or not to, without a
// branch.
func (m *merge) play(c contender, node int) contender {
	for ; node > 0; node /= 2 {
		loser := &m.losers[node]
		_, exchange := bits.Sub64(loser.prefix, c.prefix, 0)
		if loser.prefix == c.prefix && m.tied(loser.run, c.run) {
			exchange = 1
		}
		prefix, run := (loser.prefix^c.prefix)&-exchange, (loser.run^c.run)&-int(exchange)
		loser.prefix, loser.run = loser.prefix^prefix, loser.run^run
		c = contender{c.prefix ^ prefix, c.run ^ run}
	}
	return c
}

// before reports whether the head of a run comes before that of another.
func (m *merge) before(a, b contender) bool {
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	return m.tied(a.run, b.run)
}

// tied is before, for runs whose heads have equal prefixes.
func (m *merge) tied(i, k int) bool {
	a, b := &m.heads[i], &m.heads[k]
	if len(a.rest) == 0 || len(b.rest) == 0 {
		return len(a.rest) > 0 || len(b.rest) == 0 && i < k
	}
	if c := m.compare(a.key, b.key); c != 0 {
		return c < 0
	}
	return i < k
}

// build finds the first record of each run, and plays all matches.
func (m *merge) build() (err error) {
	n := len(m.heads)
	m.losers = make([]contender, n)
	winners := make([]contender, 2*n)
	for i := range m.heads {
		if winners[n+i], err = m.next(i); err != nil {
			return err
		}
	}
	for i := n - 1; i > 0; i-- {
		a, b := winners[2*i], winners[2*i+1]
		if m.before(b, a) {
			a, b = b, a
		}
		winners[i], m.losers[i] = a, b
	}
	m.losers[0] = winners[1]
	return nil
}

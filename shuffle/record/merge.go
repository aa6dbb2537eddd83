package record

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"rankfs/meta"
)

// A Run is what a map has of a part, in pieces that stand one after the other.
type Run [][]byte

// Merge merges runs, each sorted and combined by Divide, into b, and returns how many bytes
// that are. Without b it only counts them. Of records with one key those of the run that
// stands first come first.
func (s Spec) Merge(ctx context.Context, runs []Run, b []byte) (n int64, err error) {
	out := output{bytes: b}
	err = s.merge(ctx, runs, &out)
	return int64(out.at), err
}

// Offsets writes into b where the records of a part begin, and where the last ends, each in
// offsetBytes, little-endian; and returns how many bytes that are. Without b it only counts
// them. A part without an order is its runs, one after the other.
func (s Spec) Offsets(ctx context.Context, runs []Run, b []byte) (n int64, err error) {
	var out output
	mark := func() {
		if b != nil {
			binary.LittleEndian.PutUint64(b[n:], out.at)
		}
		n += offsetBytes
	}
	out.each = func([]byte) { mark() }
	if s.Ordered() {
		err = s.merge(ctx, runs, &out)
	} else {
		err = s.follow(ctx, runs, &out)
	}
	mark()
	return n, err
}

const offsetBytes = 8

// follow puts the records of runs as they stand.
func (s Spec) follow(ctx context.Context, runs []Run, out *output) error {
	for i, run := range runs {
		for _, piece := range run {
			for number := 0; len(piece) > 0; number++ {
				if number%looks == 0 && ctx.Err() != nil {
					return ctx.Err()
				}
				r, err := s.first(piece)
				if err != nil {
					return damaged(i, err)
				}
				out.put(nil, r.whole)
				piece = piece[len(r.whole):]
			}
		}
	}
	return nil
}

func damaged(run int, err error) error {
	return fmt.Errorf("run %d of a part %w: %w", run, meta.ErrCorrupt, err)
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
		if number%looks == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.take(h.row, h.key); err != nil {
			return err
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
	rest []byte // of a piece that was not merged yet, with row; empty: the run has ended
	more Run    // that comes after
	row  row
	key  []byte
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
	for len(h.rest) == 0 && len(h.more) > 0 {
		h.rest, h.more = h.more[0], h.more[1:]
	}
	if len(h.rest) == 0 {
		return contender{math.MaxUint64, run}, nil
	}
	r, err := m.first(h.rest)
	if err != nil {
		return contender{}, damaged(run, err)
	}
	h.row, h.key = r, m.key(r.payload)
	return contender{m.prefix(h.key), run}, nil
}

// advance goes on to the next record of the run that won all, and plays its matches.
func (m *merge) advance(run int) error {
	h := &m.heads[run]
	h.rest = h.rest[len(h.row.whole):]
	winner, err := m.next(run)
	if err != nil {
		return err
	}
	for i := (run + len(m.heads)) / 2; i > 0; i /= 2 {
		if m.before(m.losers[i], winner) {
			winner, m.losers[i] = m.losers[i], winner
		}
	}
	m.losers[0] = winner
	return nil
}

// before reports whether the head of a run comes before that of another.
func (m *merge) before(a, b contender) bool {
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	return m.tied(a.run, b.run)
}

// tied is that where prefixes are equal.
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

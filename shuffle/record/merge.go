package record

import (
	"context"
	"encoding/binary"
	"fmt"

	"rankfs/meta"
)

// Merge merges runs, each sorted and combined by Divide, into b, and returns how many bytes
// that are. Without b it only counts them. Of records with one key those of the run that
// stands first come first.
func (s Spec) Merge(ctx context.Context, runs [][]byte, b []byte) (n int64, err error) {
	at := uint64(0)
	err = s.merge(ctx, runs, writer(b, &at))
	return int64(at), err
}

// Offsets writes into b where the records of a part begin, and where the last ends, each in
// offsetBytes, little-endian; and returns how many bytes that are. Without b it only counts
// them. A part without an order is its runs, one after the other.
func (s Spec) Offsets(ctx context.Context, runs [][]byte, b []byte) (n int64, err error) {
	at := uint64(0)
	mark := func() {
		if b != nil {
			binary.LittleEndian.PutUint64(b[n:], at)
		}
		n += offsetBytes
	}
	put := func(_ []byte, pieces ...[]byte) {
		mark()
		for _, p := range pieces {
			at += uint64(len(p))
		}
	}
	if s.Ordered() {
		err = s.merge(ctx, runs, put)
	} else {
		err = s.follow(ctx, runs, put)
	}
	mark()
	return n, err
}

const offsetBytes = 8

// follow puts the records of runs as they stand.
func (s Spec) follow(ctx context.Context, runs [][]byte, put func(key []byte, pieces ...[]byte)) error {
	for i, run := range runs {
		for number := 0; len(run) > 0; number++ {
			if number%looks == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			r, err := s.first(run)
			if err != nil {
				return damaged(i, err)
			}
			put(nil, r.whole)
			run = run[len(r.whole):]
		}
	}
	return nil
}

func damaged(run int, err error) error {
	return fmt.Errorf("run %d of a part %w: %w", run, meta.ErrCorrupt, err)
}

// merge puts the records of sorted runs in their order.
func (s Spec) merge(ctx context.Context, runs [][]byte, put func(key []byte, pieces ...[]byte)) error {
	m := merge{Spec: s}
	c := combiner{Spec: s, merges: true, put: put}
	for i, run := range runs {
		head := &head{run: i, rest: run}
		if err := m.advance(head); err != nil {
			return err
		}
		m.heads = append(m.heads, head)
	}
	m.build()
	for number := 0; len(m.heads) > 0; number++ {
		h := m.heads[m.losers[0]]
		if h.ended {
			break
		}
		if number%looks == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.take(h.row, h.key); err != nil {
			return err
		}
		if err := m.advance(h); err != nil {
			return err
		}
		m.replay(h.run)
	}
	c.end()
	return nil
}

// A merge is a tree of losers: a leaf is the head of a run, an inner node has the run that
// lost there against the one that went on, and losers[0] is the run that won all.
type merge struct {
	Spec
	heads  []*head
	losers []int
}

// A head is the next record of a run.
type head struct {
	run    int
	rest   []byte // that was not merged yet, with row
	row    row
	key    []byte
	prefix uint64
	ended  bool
}

// advance goes on to the next record of a run.
func (m *merge) advance(h *head) error {
	h.rest = h.rest[len(h.row.whole):]
	if h.ended = len(h.rest) == 0; h.ended {
		h.row, h.key = row{}, nil
		return nil
	}
	r, err := m.first(h.rest)
	if err != nil {
		return damaged(h.run, err)
	}
	h.row, h.key = r, m.key(r.payload)
	h.prefix = m.prefix(h.key)
	return nil
}

// before reports whether the head of a run comes before that of another.
func (m *merge) before(i, k int) bool {
	a, b := m.heads[i], m.heads[k]
	switch {
	case a.ended || b.ended:
		return !a.ended || b.ended && i < k
	case a.prefix != b.prefix:
		return a.prefix < b.prefix
	}
	if c := m.compare(a.key, b.key); c != 0 {
		return c < 0
	}
	return i < k
}

// build plays all matches.
func (m *merge) build() {
	n := len(m.heads)
	m.losers = make([]int, max(1, n))
	winners := make([]int, 2*n)
	for i := range n {
		winners[n+i] = i
	}
	for i := n - 1; i > 0; i-- {
		a, b := winners[2*i], winners[2*i+1]
		if m.before(b, a) {
			a, b = b, a
		}
		winners[i], m.losers[i] = a, b
	}
	if n > 1 {
		m.losers[0] = winners[1]
	}
}

// replay plays the matches of a run whose head is another now.
func (m *merge) replay(winner int) {
	for i := (winner + len(m.heads)) / 2; i > 0; i /= 2 {
		if m.before(m.losers[i], winner) {
			winner, m.losers[i] = m.losers[i], winner
		}
	}
	m.losers[0] = winner
}

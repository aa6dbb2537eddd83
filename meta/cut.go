package meta

import (
	"fmt"
	"math/bits"
)

// A Span is the run of positions of the epoch's order that one batch holds.
type Span struct {
	First uint64
	Count uint64
}

// A Tail says what happens to the records that do not fill the last step.
type Tail uint8

const (
	TailKeep Tail = iota // the last step is short: nothing lost, nothing repeated
	TailDrop             // the last step is left out
	TailPad              // the last step is filled from the start of the order
)

// A Cut divides the N positions of an order into steps of Global positions
// and each step among Ranks: every position falls to exactly one rank of one step.
//
// Position p belongs to step p/Global whatever the number of ranks, so the
// sequence of global batches does not depend on it.
type Cut struct {
	N      uint64 // positions: records, or chunks where a batch is a chunk
	Global uint64 // positions of one whole step
	Ranks  uint64
	Tail   Tail
}

// Steps is the number of steps, the same for every rank.
func (c Cut) Steps() uint64 {
	if c.N == 0 {
		return 0
	}
	whole, rest := c.N/c.Global, c.N%c.Global
	if rest != 0 && c.Tail != TailDrop {
		whole++
	}
	return whole
}

// Largest is how many positions the largest batch has.
func (c Cut) Largest() uint64 { return (c.Global + c.Ranks - 1) / c.Ranks }

// Span returns the positions of one batch. Positions from N on stand for the
// order begun again: take them modulo N. Shares of a step differ by at most
// one position. The rank and step must be in range.
func (c Cut) Span(rank, step uint64) Span {
	first := step * c.Global
	size := c.Global
	if rest := c.N - first; rest < size && c.Tail != TailPad {
		size = rest
	}
	from, to := mulDiv(size, rank, c.Ranks), mulDiv(size, rank+1, c.Ranks)
	return Span{First: first + from, Count: to - from}
}

// Reader returns the rank that reads a position below N, and the step in which it does:
// the inverse of Span. With tail=drop that step may not exist.
func (c Cut) Reader(position uint64) (rank, step uint64) {
	step = position / c.Global
	first, size := step*c.Global, c.Global
	if rest := c.N - first; rest < size && c.Tail != TailPad {
		size = rest
	}
	rank = mulDiv(c.Ranks, position-first, size)
	for mulDiv(size, rank+1, c.Ranks) <= position-first {
		rank++
	}
	return rank, step
}

// mulDiv is a*b/c without overflow, for b <= c.
func mulDiv(a, b, c uint64) uint64 {
	high, low := bits.Mul64(a, b)
	q, _ := bits.Div64(high, low, c)
	return q
}

func (t Tail) String() string {
	return [...]string{"keep", "drop", "pad"}[t]
}

// ParseTail reads keep, drop or pad.
func ParseTail(s string) (Tail, error) {
	for t := TailKeep; t <= TailPad; t++ {
		if s == t.String() {
			return t, nil
		}
	}
	return 0, fmt.Errorf("tail %q %w: use keep, drop or pad", s, ErrInvalid)
}

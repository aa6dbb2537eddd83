package wire

import (
	"fmt"

	"rankfs/meta"
)

// A Sink is where the data of an answer goes. It is used by one goroutine, and
// owns the memory that it lends.
type Sink interface {
	// Size is told how long the answer is, where the call has it told, before
	// its first byte.
	Size(n uint64) error
	// Room is memory for some of the next n bytes. There must be room for
	// all of them: what is too much is ErrLong.
	Room(n int) ([]byte, error)
	// Filled says that the memory last given holds what was sent. It is no
	// success yet: the sum of what follows has still to be right.
	Filled() error
	// Whole reports whether nothing is missing, ErrShort if so.
	Whole() error
}

// Errors of a Sink, of an answer that is not as long as it has to be.
var (
	ErrLong  = fmt.Errorf("answer %w: it is longer than what was asked for", meta.ErrCorrupt)
	ErrShort = fmt.Errorf("answer %w: it is shorter than what was asked for", meta.ErrCorrupt)
)

// A Scatter is a Sink of pieces of memory, in their order.
type Scatter struct {
	parts [][]byte
	at    int // in the first of them
}

// NewScatter makes a sink of parts. What they hold after an error is undefined,
// but nothing writes there any more.
func NewScatter(parts [][]byte) *Scatter { return &Scatter{parts: parts} }

func (s *Scatter) Size(uint64) error {
	return fmt.Errorf("answer %w: it tells a size, where bytes were asked for", meta.ErrCorrupt)
}

func (s *Scatter) Room(n int) ([]byte, error) {
	s.skip()
	if len(s.parts) == 0 {
		return nil, ErrLong
	}
	p := s.parts[0][s.at:]
	p = p[:min(n, len(p))]
	s.at += len(p)
	return p, nil
}

func (s *Scatter) Filled() error { return nil }

func (s *Scatter) Whole() error {
	if s.skip(); len(s.parts) > 0 {
		return ErrShort
	}
	return nil
}

// skip passes over parts that are full.
func (s *Scatter) skip() {
	for len(s.parts) > 0 && s.at == len(s.parts[0]) {
		s.parts, s.at = s.parts[1:], 0
	}
}

// MaxResult is the longest result of a push.
const MaxResult = 1 << 10

// A resultSink takes the result of a push.
type resultSink struct {
	b    []byte
	left int
}

func (r *resultSink) Size(n uint64) error {
	if r.b != nil || n > MaxResult {
		return fmt.Errorf("result of %d bytes %w: %d at most", n, meta.ErrCorrupt, MaxResult)
	}
	r.b, r.left = make([]byte, n), int(n)
	return nil
}

func (r *resultSink) Room(n int) ([]byte, error) {
	if n > r.left {
		return nil, ErrLong
	}
	from := len(r.b) - r.left
	r.left -= n
	return r.b[from : from+n], nil
}

func (r *resultSink) Filled() error { return nil }

func (r *resultSink) Whole() error {
	if r.left > 0 {
		return ErrShort
	}
	return nil
}

package gathering

import (
	"slices"
	"sync"

	"rankfs/shuffle/merging"
	"rankfs/shuffle/pieces"
)

// What is remembered: 1.5 MiB of pieces and slices, 24 bytes each, and as many parts as
// readers look at at a time; the part that was measured last in any case: of 2^18 maps 6 MiB.
const (
	maxPieces = 1 << 16
	maxParts  = 1 << 10
)

// A Name tells a part from all others there ever were.
type Name [7]uint64

// A Measurement has the pieces of a part, and its length.
type Measurement struct {
	Pieces []pieces.Piece
	Wants  merging.Wanted
	Size   int64
}

// entries is the number of pieces and slices, which is bounded in all that is remembered.
func (m Measurement) entries() int { return len(m.Pieces) + m.Wants.Len() }

// A Measured remembers what the pieces are of parts that were looked at last: a reader
// asks several times how long a part is before it reads it. What a name stands for never
// changes, wherever its copies are. The lock guards the fields below it.
type Measured struct {
	mu sync.Mutex
	of map[Name]Measurement
	in []Name // from the oldest on
	n  int    // of all pieces
}

// Get is what was found of a part, if it is remembered.
func (m *Measured) Get(name Name) (Measurement, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	is, ok := m.of[name]
	return is, ok
}

// Forget forgets what was said of a part: it came of a copy that may be damaged.
func (m *Measured) Forget(name Name) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if is, ok := m.of[name]; ok {
		m.n -= is.entries()
		delete(m.of, name)
		m.in = slices.DeleteFunc(m.in, func(one Name) bool { return one == name })
	}
}

// Put remembers what was found of a part, unless it is remembered.
func (m *Measured) Put(name Name, is Measurement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.of[name]; ok {
		return
	}
	if m.of == nil {
		m.of = make(map[Name]Measurement)
	}
	m.of[name] = is
	m.in, m.n = append(m.in, name), m.n+is.entries()
	for len(m.in) > 1 && (m.n > maxPieces || len(m.in) > maxParts) {
		m.n -= m.of[m.in[0]].entries()
		delete(m.of, m.in[0])
		m.in = m.in[1:]
	}
}

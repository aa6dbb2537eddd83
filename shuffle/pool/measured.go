package pool

import (
	"slices"
	"sync"

	"rankfs/shuffle/merging"
	"rankfs/shuffle/pieces"
)

// What is remembered: 1.5 MiB of pieces and slices, 24 bytes each, and as many parts as
// readers look at at a time; the part that was measured last in any case: of 2^18 maps 6 MiB.
const (
	mostPieces = 1 << 16
	mostParts  = 1 << 10
)

// A partName tells a part from all others there ever were.
type partName [7]uint64

// A measurement has the pieces of a part, and its length.
type measurement struct {
	pieces []pieces.Piece
	wants  merging.Wanted
	size   int64
}

// entries is the number of pieces and slices, which is bounded in all that is remembered.
func (m measurement) entries() int { return len(m.pieces) + m.wants.Len() }

// A measured remembers what the pieces are of parts that were looked at last: a reader
// asks several times how long a part is before it reads it. What a name stands for never
// changes, wherever its copies are. The lock guards the fields below it.
type measured struct {
	mu sync.Mutex
	of map[partName]measurement
	in []partName // from the oldest on
	n  int        // of all pieces
}

func (m *measured) get(name partName) (measurement, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	is, ok := m.of[name]
	return is, ok
}

// forget forgets what was said of a part: it came of a copy that may be damaged.
func (m *measured) forget(name partName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if is, ok := m.of[name]; ok {
		m.n -= is.entries()
		delete(m.of, name)
		m.in = slices.DeleteFunc(m.in, func(one partName) bool { return one == name })
	}
}

func (m *measured) put(name partName, is measurement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.of[name]; ok {
		return
	}
	if m.of == nil {
		m.of = make(map[partName]measurement)
	}
	m.of[name] = is
	m.in, m.n = append(m.in, name), m.n+is.entries()
	for len(m.in) > 1 && (m.n > mostPieces || len(m.in) > mostParts) {
		m.n -= m.of[m.in[0]].entries()
		delete(m.of, m.in[0])
		m.in = m.in[1:]
	}
}

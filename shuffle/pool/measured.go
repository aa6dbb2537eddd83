package pool

import (
	"slices"
	"sync"
)

// What is remembered: 1.5 MiB of pieces, 24 bytes each, and as many parts as readers look at
// at a time.
const (
	mostPieces = 1 << 16
	mostParts  = 1 << 10
)

// A measured remembers what the pieces are of parts that were looked at last: a reader
// asks several times how long a part is before it reads it. What a name stands for never
// changes, wherever its copies are. The lock guards the fields below it.
type measured struct {
	mu sync.Mutex
	of map[partName][]piece
	in []partName // from the oldest on
	n  int        // of all pieces
}

func (m *measured) get(name partName) ([]piece, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, ok := m.of[name]
	return all, ok
}

// forget forgets what was said of a part: it came of a copy that may be damaged.
func (m *measured) forget(name partName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if all, ok := m.of[name]; ok {
		m.n -= len(all)
		delete(m.of, name)
		m.in = slices.DeleteFunc(m.in, func(one partName) bool { return one == name })
	}
}

func (m *measured) put(name partName, pieces []piece) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.of[name]; ok || len(pieces) > mostPieces {
		return
	}
	if m.of == nil {
		m.of = make(map[partName][]piece)
	}
	m.of[name] = pieces
	m.in, m.n = append(m.in, name), m.n+len(pieces)
	for m.n > mostPieces || len(m.in) > mostParts {
		m.n -= len(m.of[m.in[0]])
		delete(m.of, m.in[0])
		m.in = m.in[1:]
	}
}

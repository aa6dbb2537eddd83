package openmaps

import "sync"

// How far a disk is asked ahead of a reader of pieces of a map, and how many of the last
// one's length may lie between where two readers of parts are.
const (
	maxAhead  = 256 << 10
	gapPieces = 8
)

// An ahead has the range that a disk was asked for of a map whose pieces are read in about their
// order, by reads of part after part: pieces are small where there are many parts, and a
// disk brings many at once in hardly longer than one. What is asked for grows with each
// piece that follows, so that a single one costs no more than it has. The kernel, which does
// the same for files that are read in order, would bring whole maps. The lock guards all of it.
type ahead struct {
	mu         sync.Mutex
	begin, end int64 // what the disk was asked for
	further    int64 // how much of it lay beyond the last piece
}

// next is the range that a disk is to be asked for before a piece is read, of a map of so many bytes.
func (a *ahead) next(begin, end, size int64) (from, to int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	gap := gapPieces * (end - begin)
	switch {
	case begin < a.begin-gap || begin > a.end+gap || a.end == 0: // elsewhere
		a.begin, a.end, a.further = begin, end, 0
		return begin, end
	case begin < a.begin: // of a part before, whose reader is slower
		a.begin = begin
		return begin, end
	case end+a.further/2 <= a.end: // enough is on its way
		return end, end
	}
	a.further = min(max(2*a.further, end-begin), maxAhead)
	from, to = a.end, min(end+a.further, size)
	a.end = max(from, to)
	return from, a.end
}

package merging

import "rankfs/shuffle/turns"

// A room bounds the bytes that parts of this node take while they are merged: to a
// quarter of what the pool may have in memory, or the least that one part takes.
type room struct {
	bytes int64
	*turns.Shares
}

func newRoom(ram int64) room {
	n := max(1, ram/4)
	return room{n, turns.New(n)}
}

// Of a run that is merged in portions there are three: one that is merged, the one before it,
// which may have the record that was taken last, and one that is fetched meanwhile.
const (
	portionsEach = 3
	minPortion   = 16 << 10
	maxPortion   = 4 << 20
)

// large is the size up to which a part is merged at once; a larger one is merged in portions,
// unless it has very many runs.
func (r room) large() int64 { return max(1, r.bytes/4) }

// portion is the size of a portion of so many runs.
func (r room) portion(runs int) int64 {
	return min(maxPortion, max(minPortion, r.large()/int64(portionsEach*max(1, runs))))
}

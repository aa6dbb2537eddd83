package order

import "rankfs/meta"

// A Source has the numbers of what an order goes through: records, and the chunks that they are
// fetched in.
type Source struct {
	Records, Chunks uint64
	Bytes           int64
}

// Room is the part of a node's memory and disk that can be trusted to keep chunks beside
// the batches in use.
func Room(ram, disk int64) int64 { return ram/4*3 + disk }

// Stays reports whether a chunk stays in caches of that capacity from its first record
// to its last. If not, fetching chunks whole would fetch them again and again, and
// records are better asked for one by one.
func Stays(o meta.Order, s Source, capacity int64) bool {
	chunk := s.Bytes / int64(max(1, s.Chunks))
	between := s.Bytes // that are read until a chunk's records have all had their turn
	switch o.Kind {
	case meta.OrderNone:
		between = 0
	case meta.OrderWindow:
		if run := s.run(o.Window); run >= chunk && o.Window < s.Records {
			between = min(between, inWindows*(run+chunk))
		}
	}
	return between+2*chunk <= capacity
}

// What is made ready ahead is of the next window while some of one is still to be
// read, and a block can reach past a window's end. A block begins and ends within
// chunks; those come back in other windows, and all do where blocks are shorter than
// they are.
const inWindows = 2*BlocksPerWindow + 1

// run is the bytes of one block of a window of that many records.
func (s Source) run(window uint64) int64 {
	return int64(float64(window/BlocksPerWindow) * float64(s.Bytes) / float64(max(1, s.Records)))
}

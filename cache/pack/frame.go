package pack

// A number is that of a frame: of its segment, and within that.
type number uint32

const (
	none        = ^number(0)
	segmentBits = 12 // of a number
	frameBits   = 32 - segmentBits
)

// A frame is lent to one rope.
type frame struct {
	number number
	mem    []byte
}

const (
	// frameBytes: a packed block of 100 KiB crosses frames of this size 40
	// times in 100 and is then copied together, 2 per cent of unpacking it;
	// small enough that page tables of half-empty frames do not show.
	frameBytes = 256 << 10
	// segmentBytes is 256 frames: few enough mappings, and soon all free again.
	segmentBytes = 64 << 20
	// maxSegments bounds the mappings of an arena, of which a process may have
	// 65,530: 256 GiB of addresses, or 16 to 32 times the budget.
	maxSegments = 1<<segmentBits - 1
)

// segmentSize is the length of the segments of a budget.
func segmentSize(limit int64) int {
	n := segmentBytes
	for int64(n)*maxSegments/16 < limit && n/frameBytes < 1<<frameBits {
		n *= 2
	}
	return n
}

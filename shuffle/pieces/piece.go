package pieces

// A Piece is what a map has of a part: so many bytes, which hash to that.
type Piece struct {
	Size  int64
	Sum   uint64
	Begin int64 // in the map; below zero: not known
}

// SizeOf is the number of bytes of some pieces together.
func SizeOf(some []Piece) (n int64) {
	for _, one := range some {
		n += one.Size
	}
	return n
}

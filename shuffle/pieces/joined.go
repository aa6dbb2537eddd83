package pieces

import "io"

// A Joined has the first bytes of one reader, and after them those of another, if there is
// one. A map whose records need not be put into another order stays the file that was written;
// what the pool adds comes after it, and need not be in that file.
type Joined struct {
	First io.ReaderAt
	N     int64
	Rest  io.ReaderAt
}

// ReadAt implements io.ReaderAt.
func (j Joined) ReadAt(b []byte, off int64) (n int, err error) {
	if j.Rest == nil {
		return j.First.ReadAt(b, off)
	}
	if off < j.N {
		some := b[:min(int64(len(b)), j.N-off)]
		if n, err = j.First.ReadAt(some, off); n < len(some) {
			return n, err
		}
	}
	if n == len(b) {
		return n, nil
	}
	more, err := j.Rest.ReadAt(b[n:], off+int64(n)-j.N)
	return n + more, err
}

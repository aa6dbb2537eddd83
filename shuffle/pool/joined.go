package pool

import "io"

// A joined has the first bytes of one reader, and after them those of another, if there is
// one. A map whose records need not be put into another order stays the file that was written;
// what the pool adds comes after it, and need not be in that file.
type joined struct {
	first io.ReaderAt
	n     int64
	rest  io.ReaderAt
}

// ReadAt implements io.ReaderAt.
func (j joined) ReadAt(b []byte, off int64) (n int, err error) {
	if j.rest == nil {
		return j.first.ReadAt(b, off)
	}
	if off < j.n {
		some := b[:min(int64(len(b)), j.n-off)]
		if n, err = j.first.ReadAt(some, off); n < len(some) {
			return n, err
		}
	}
	if n == len(b) {
		return n, nil
	}
	more, err := j.rest.ReadAt(b[n:], off+int64(n)-j.n)
	return n + more, err
}

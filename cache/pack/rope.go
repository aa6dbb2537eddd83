package pack

// A rope is a run of bytes in frames, written once by its owner and then only
// read.
type rope struct {
	frames []frame
	length int64
	real   int64 // bytes that count for it: whole pages
}

// inFrame returns those of the n bytes at off that lie in the same frame, at least one.
// Frames are a multiple of a head and of an entry, which are never in two.
func (r *rope) inFrame(off int64, n int) []byte {
	at := int(off % frameBytes)
	return r.frames[off/frameBytes].mem[at:min(at+n, frameBytes)]
}

// write replaces bytes of the rope.
func (r *rope) write(b []byte, off int64) {
	for len(b) > 0 {
		n := copy(r.inFrame(off, len(b)), b)
		b, off = b[n:], off+int64(n)
	}
}

// read returns n bytes, in place if they are in one frame, or else together in
// joined.
func (r *rope) read(joined []byte, off int64, n int) []byte {
	if b := r.inFrame(off, n); len(b) == n {
		return b
	}
	joined = joined[:n]
	for to := joined; len(to) > 0; {
		k := copy(to, r.inFrame(off, len(to)))
		to, off = to[k:], off+int64(k)
	}
	return joined
}

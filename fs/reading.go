package fs

import "context"

// A reading is an open queue file. A shell reads a line byte by byte, so the rest of
// a line that was read in part waits here.
//
// A lookup finds the file by its name, but a listing omits it: a process that copies
// or searches the tree would take lines from the ranks that work on them.
type reading struct {
	queue Queue
	busy  chan struct{} // holds one token while a read runs
	rest  []byte
	watched
}

func newReading(q Queue) *reading {
	return &reading{queue: q, busy: make(chan struct{}, 1)}
}

// read returns what is left of a line, or the next one.
func (r *reading) read(ctx context.Context, buf []byte, wait bool) ([]byte, error) {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if len(r.rest) == 0 {
		r.waits(true)
		line, err := r.queue.Next(ctx, wait)
		r.waits(false)
		if err != nil {
			return nil, err
		}
		r.rest = line
	}
	n := copy(buf, r.rest)
	r.rest = r.rest[n:]
	r.leaves(len(r.rest) > 0)
	return buf[:n], nil
}

// ready reports whether a read would return at once. While one waits another
// would wait behind it.
func (r *reading) ready(ctx context.Context) bool {
	r.mu.Lock()
	left, waits := r.mu.left, r.mu.waits
	r.mu.Unlock()
	return left || !waits && r.queue.Ready(ctx, false)
}

// close gives the work back. The kernel closes a file after its last read.
func (r *reading) close() {
	r.watched.close()
	r.queue.Close()
}

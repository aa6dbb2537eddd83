package fs

import (
	"context"
	"errors"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

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

// close gives the work back. The kernel closes a file after its last read.
func (r *reading) close() {
	r.watched.close()
	r.queue.Close()
}

func (t *Tree) readQueue(cancel <-chan struct{}, input *fuse.ReadIn, r *reading, buf []byte) (fuse.ReadResult, fuse.Status) {
	data, err := r.read(requestContext(cancel), buf, input.Flags&syscall.O_NONBLOCK == 0)
	if err == nil {
		return fuse.ReadResultData(data), fuse.OK
	}
	if errors.Is(err, syscall.EAGAIN) { // the reader chose not to wait: no error
		t.watch(r)
		return nil, fuse.EAGAIN
	}
	name := nameQueue
	if n, ok := t.views.byIno(input.NodeId); ok {
		name = n.path()
	}
	return nil, t.errno("read queue", name, err)
}

package fs

import (
	"errors"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

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

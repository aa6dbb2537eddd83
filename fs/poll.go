package fs

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/fs/device"
)

// # poll(2)
//
// All files but queues are always ready. A queue is ready when a read would
// return at once; finding that out takes nothing and finishes nothing. The
// kernel names a file that it wants to be told of by a number, its poll handle,
// and keeps that until the file is closed: a program that waits for an edge, as
// those in Go do, never asks again before it has been told. So the number is
// remembered with either answer, and a watch begins at each "not ready" and
// at each read that ends in EAGAIN.

const (
	opLookup, opLseek  = 1, 46 // of the protocol, as those that follow
	pollScheduleNotify = 1
	notifyPoll         = 1

	pollRead, pollWrite = 0x40, 0x100 // POLLRDNORM and POLLWRNORM

	maskReady  = unix.POLLIN | pollRead
	maskAlways = maskReady | unix.POLLOUT | pollWrite // what the kernel says by itself of a file that cannot be polled
)

// pollTime bounds a poll(2) that does not want to wait, where the cluster has no
// leader: so long it may take to say "not ready".
const pollTime = time.Second

// An operation begins as the library's description of one does.
type operation struct {
	_            int // its number
	name         string
	handle       func(server, request unsafe.Pointer)
	_            [2]uintptr // sizes of the input and the output
	_            [2]any     // and their types
	namesInInput int
}

// operations is the library's table of what it does for which request.
//
//go:linkname operations github.com/hanwen/go-fuse/v2/fuse.operationHandlers
var operations []*operation

// takePolls has POLL requests come to Lseek, on all mounts of the process. The library
// answers ENOSYS to the first of a mount, upon which the kernel never asks again there; but
// a request for LSEEK, and its answer, have the same fields of the same size. It also has a file of its own
// in each mount, any poll of which is told ENOSYS; without a name in requests for
// LOOKUP, as far as it knows, it does not look for that file's.
var takePolls = sync.OnceValue(func() error {
	if len(operations) <= opLseek || operations[device.OpPoll].name != "POLL" || operations[opLseek].name != "LSEEK" ||
		operations[opLookup].name != "LOOKUP" || operations[opLookup].namesInInput != 1 {
		return fmt.Errorf("the FUSE library has another table of operations")
	}
	operations[device.OpPoll].handle = operations[opLseek].handle
	operations[opLookup].namesInInput = 0
	return nil
})

// Lseek answers POLL: see takePolls.
func (t *Tree) Lseek(cancel <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	if in.Opcode != device.OpPoll {
		return fuse.ENOSYS
	}
	*out = fuse.LseekOut{Offset: maskAlways}
	h, ok := t.handles.get(in.Fh)
	if !ok || h.queue == nil {
		return fuse.OK
	}
	if kernel, flags := in.Offset, in.Whence; flags&pollScheduleNotify != 0 {
		h.queue.asked(kernel)
	}
	out.Offset = maskReady
	ctx, stop := context.WithTimeout(requestContext(cancel), pollTime)
	defer stop()
	if !h.queue.ready(ctx) {
		out.Offset = 0
		t.watch(h.queue)
	}
	return fuse.OK
}

// watch tells the kernel when a queue is ready, once, if it wants to know. There
// is one watch of a file, which ends with it.
func (c *connection) watch(r *reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.known || r.mu.closed || r.mu.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(c.watches)
	r.mu.stop = stop
	handle := r.mu.handle
	c.notices.tell(func() {
		defer stop()
		for !r.queue.Ready(ctx, true) {
			if ctx.Err() != nil {
				return
			}
		}
		r.seen()
		c.notify(handle)
	})
}

// notify wakes the processes that poll a file. The kernel ignores handles of closed
// files.
func (c *connection) notify(handle uint64) {
	var message [24]byte // a header and the handle
	binary.NativeEndian.PutUint32(message[0:], uint32(len(message)))
	binary.NativeEndian.PutUint32(message[4:], notifyPoll)
	binary.NativeEndian.PutUint64(message[16:], handle)
	if _, err := c.device.Write(message[:]); err != nil && c.watches.Err() == nil {
		c.log.Warn("poll of a queue was not answered", "cause", os.NewSyscallError("notify", err))
	}
}

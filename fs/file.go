package fs

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

func (t *Tree) Open(cancel <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if input.NodeId < inoViews {
		if i := int(input.NodeId) - inoInfoFiles; i >= 0 && i < len(t.config.Info) {
			out.Fh = t.handles.add(handle{text: t.config.Info[i].Content()})
			out.OpenFlags = fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NOFLUSH
			return fuse.OK
		}
		return fuse.EISDIR
	}
	n, ok := t.views.byIno(input.NodeId)
	if !ok {
		return fuse.Status(unix.ESTALE)
	}
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_NOFLUSH
	switch n.kind {
	case kindBatch:
		return t.openBatch(requestContext(cancel), int32(input.Pid), n, out)
	case kindOffsets:
		offsets, err := n.dir.Offsets(requestContext(cancel), n.rank, n.step)
		if err != nil {
			return t.errnos.Of("open record table", n.path(), err)
		}
		out.Fh = t.handles.add(handle{offsets: offsets})
	case kindLocality:
		table := n.dir.Locality()
		out.Fh = t.handles.add(handle{table: &table})
		out.OpenFlags = fuse.FOPEN_NOFLUSH // the hosts change: the kernel drops its pages at each open
		if !n.dir.Settled() {
			out.OpenFlags = fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NOFLUSH
		}
	case kindChunks:
		// Uncached: a process that reads whole lines gets each line as of one
		// moment, though replicas move.
		table := n.dir.Chunks()
		out.Fh = t.handles.add(handle{table: &table})
		out.OpenFlags = fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NOFLUSH
	case kindDescription:
		out.Fh = t.handles.add(handle{text: n.dir.Describe()})
		out.OpenFlags = fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NOFLUSH
	case kindQueue:
		out.Fh = t.handles.add(handle{queue: newReading(n.dir.Queue(n.rank, input.Uid))})
		out.OpenFlags = fuse.FOPEN_DIRECT_IO | fuse.FOPEN_STREAM | fuse.FOPEN_NOFLUSH
	default:
		return fuse.EISDIR
	}
	return fuse.OK
}

// openBatch waits for the slab. From here on the kernel reads and maps it
// without us.
func (t *Tree) openBatch(ctx context.Context, thread int32, n node, out *fuse.OpenOut) fuse.Status {
	slab, err := n.dir.Open(ctx, thread, n.rank, n.step)
	if err != nil {
		return t.errnos.Of("open batch", n.path(), err)
	}
	h := handle{dir: n.dir, slab: slab}
	if t.passthrough.Load() {
		out.OpenFlags = fuse.FOPEN_PASSTHROUGH | fuse.FOPEN_NOFLUSH
		out.BackingID = slab.Backing()
	} else {
		if h.size, err = n.size(ctx); err != nil {
			slab.Release()
			return t.errnos.Of("open batch", n.path(), err)
		}
	}
	t.views.hold(n.dir, 1, time.Now())
	out.Fh = t.handles.add(h)
	return fuse.OK
}

func (t *Tree) Release(cancel <-chan struct{}, input *fuse.ReleaseIn) {
	h, ok := t.handles.remove(input.Fh)
	if ok && h.slab != nil {
		h.slab.Release()
		t.views.hold(h.dir, -1, time.Time{})
	}
	if ok && h.queue != nil {
		h.queue.close()
	}
}

func (t *Tree) Read(cancel <-chan struct{}, input *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	h, ok := t.handles.get(input.Fh)
	if !ok {
		return nil, fuse.EBADF
	}
	if h.slab != nil {
		t.count.batchReads.Add(1)
		size := min(int64(len(buf)), max(0, h.size-int64(input.Offset)))
		return fuse.ReadResultFd(uintptr(h.slab.Fd()), int64(input.Offset), int(size)), fuse.OK
	}
	if h.queue != nil {
		return t.readQueue(cancel, input, h.queue, buf)
	}
	if h.table != nil {
		part, err := h.table.read(requestContext(cancel), buf[:0], input.Offset, len(buf))
		if err != nil {
			return nil, t.errnos.Of("read table", "", err)
		}
		return fuse.ReadResultData(part), fuse.OK
	}
	if h.offsets != nil {
		return t.readOffsets(cancel, input, h.offsets, buf)
	}
	from := min(input.Offset, uint64(len(h.text)))
	to := min(from+uint64(len(buf)), uint64(len(h.text)))
	return fuse.ReadResultData(h.text[from:to]), fuse.OK
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
	return nil, t.errnos.Of("read queue", name, err)
}

// readOffsets makes the requested part of a record table.
func (t *Tree) readOffsets(cancel <-chan struct{}, input *fuse.ReadIn, o Offsets, buf []byte) (fuse.ReadResult, fuse.Status) {
	const width = 8
	skip := int(input.Offset % width)
	n := uint64(skip+len(buf)+width-1) / width
	part, err := o.Append(requestContext(cancel), buf[:0], input.Offset/width, n)
	if err != nil {
		return nil, t.errnos.Of("read record table", "", err)
	}
	part = part[min(skip, len(part)):]
	return fuse.ReadResultData(part[:min(len(part), len(buf))]), fuse.OK
}

func (t *Tree) Flush(cancel <-chan struct{}, input *fuse.FlushIn) fuse.Status { return fuse.OK }

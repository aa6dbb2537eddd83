package pooltree

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A partFile is a part of the stage, or where the maps begin in it.
type partFile struct {
	fusefs.Inode
	unchanging
	current
	part meta.Part
}

// ino is a number that the part of all maps has for itself; those of some have one that
// the library draws.
func (n *partFile) ino() uint64 {
	if n.part.Ranged {
		return 0
	}
	ino := inoPart | n.stage.stage.Number()<<21 | n.part.Number<<1
	if n.part.Offsets {
		ino++
	}
	return ino
}

func (n *partFile) attributes(ctx context.Context, a *fuse.Attr) syscall.Errno {
	if n.stale() {
		return syscall.ESTALE
	}
	size, err := n.stage.stage.Parts.Size(ctx, n.part)
	if err != nil {
		return n.stage.errno("look up part", n.part.String(), err)
	}
	n.stage.job.immutable(a, size)
	return 0
}

// Getattr implements fusefs.NodeGetattrer.
func (n *partFile) Getattr(ctx context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return n.attributes(ctx, &out.Attr)
}

// Open implements fusefs.NodeOpener: it waits until the stage is sealed.
func (n *partFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if flags&unix.O_ACCMODE != unix.O_RDONLY {
		return nil, 0, syscall.EPERM
	}
	thread := int32(0)
	if caller, ok := fuse.FromContext(ctx); ok {
		thread = int32(caller.Pid)
	}
	wait, used := flags&unix.O_NONBLOCK == 0, n.stage.job.job.Use(false)
	f, err := n.stage.stage.Parts.Open(ctx, thread, n.part, wait)
	if err != nil {
		used()
		return nil, 0, n.stage.errno("open part", n.part.String(), err)
	}
	return n.reads(f, used)
}

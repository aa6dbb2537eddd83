package fs

import (
	"context"
	"errors"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// lookUpPart finds a part, or its offsets. It is there from the beginning, so that an
// open can wait for it.
func (n *stageDir) lookUpPart(ctx context.Context, p meta.Part, offsets bool, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	f := &partFile{current: current{stage: n}, part: p, offsets: offsets}
	stable, generation := n.stable(f.ino())
	f.generation = generation
	if errno := f.attributes(ctx, &out.Attr); errno != 0 {
		return nil, errno
	}
	// A part of some maps has no number of its own; inodes of one name are one.
	return n.NewInode(ctx, f, stable), 0
}

// A partFile is a partition of the stage's maps, or where the maps begin in it.
type partFile struct {
	fusefs.Inode
	unchanging
	current
	part    meta.Part
	offsets bool
}

// ino is a number that the part of all maps has for itself; those of some have one that
// the library draws.
func (n *partFile) ino() uint64 {
	if n.part.Ranged {
		return 0
	}
	ino := inoPart | n.stage.stage.Number()<<21 | n.part.Number<<1
	if n.offsets {
		ino++
	}
	return ino
}

func (n *partFile) attributes(ctx context.Context, a *fuse.Attr) syscall.Errno {
	if n.stale() {
		return syscall.ESTALE
	}
	size, err := n.stage.stage.Parts().Size(ctx, n.part)
	if err == nil && n.offsets {
		var text []byte
		if text, err = n.stage.stage.Parts().Offsets(ctx, n.part, false); errors.Is(err, syscall.EAGAIN) {
			err = nil
		}
		size = int64(len(text))
	}
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
	wait, used := flags&unix.O_NONBLOCK == 0, n.stage.job.job.Use(false)
	if n.offsets {
		defer used()
		text, err := n.stage.stage.Parts().Offsets(ctx, n.part, wait)
		if err != nil {
			return nil, 0, n.stage.errno("open part", n.part.String()+idx, err)
		}
		if n.stale() {
			return nil, 0, syscall.ESTALE
		}
		return &openText{stage: n.stage, text: text}, 0, 0 // not direct, so that it can be mapped
	}
	f, err := n.stage.stage.Parts().Open(ctx, n.part, wait)
	if err != nil {
		used()
		return nil, 0, n.stage.errno("open part", n.part.String(), err)
	}
	return n.reads(f, used)
}

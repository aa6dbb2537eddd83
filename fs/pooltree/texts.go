package pooltree

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A stageText is the file spec or state.
type stageText struct {
	fusefs.Inode
	stage *ofStage
	name  string
}

func (n *stageText) attributes(a *fuse.Attr) {
	n.stage.attributes(a)
	a.Mode, a.Nlink = syscall.S_IFREG|0600, 1
	if n.name == nameState {
		a.Mode = syscall.S_IFREG | 0400
	}
}

// Getattr implements fusefs.NodeGetattrer. The texts are read to their end, whatever
// their size.
func (n *stageText) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.attributes(&out.Attr)
	return 0
}

// Setattr implements fusefs.NodeSetattrer, for a shell that truncates what it writes.
func (n *stageText) Setattr(_ context.Context, _ fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	n.attributes(&out.Attr)
	if n.name == nameState {
		return syscall.EPERM
	}
	return keptRights(in, &out.Attr)
}

// Open implements fusefs.NodeOpener. The state cannot be written, not even by root.
func (n *stageText) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if n.name == nameState && flags&unix.O_ACCMODE != unix.O_RDONLY {
		return nil, 0, syscall.EPERM
	}
	t := &openText{stage: n.stage}
	if n.name == nameSpec {
		spec, err := n.stage.stage.Spec(ctx)
		if spec != "" {
			t.text = []byte(spec + "\n")
		}
		return t, fuse.FOPEN_DIRECT_IO, n.stage.errno("read", nameSpec, err)
	}
	text, err := n.stage.stage.State(ctx)
	t.text = text
	return t, fuse.FOPEN_DIRECT_IO, n.stage.errno("read", nameState, err)
}

type openText struct {
	stage *ofStage
	text  []byte
}

// Read implements fusefs.FileReader.
func (t *openText) Read(_ context.Context, buf []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	from := min(int(off), len(t.text))
	return fuse.ReadResultData(t.text[from:min(from+len(buf), len(t.text))]), 0
}

// Write implements fusefs.FileWriter: a spec is agreed on in the write, so that the program
// that wrote it learns what is wrong with it.
func (t *openText) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	if off != 0 {
		return 0, t.stage.errno("write", nameSpec, meta.Worded(meta.ErrInvalid, "a spec is written by one write(2): write all of it in one line, as in: echo maps=16 parts=8 > spec"))
	}
	if err := t.stage.stage.Specify(ctx, string(data)); err != nil {
		return 0, t.stage.errno("write", nameSpec, err)
	}
	return uint32(len(data)), 0
}

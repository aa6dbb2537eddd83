package fs

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// unchanging is in each file of the pool that is read and removed, and never changed.
type unchanging struct{}

// Setattr implements fusefs.NodeSetattrer.
func (unchanging) Setattr(context.Context, fusefs.FileHandle, *fuse.SetAttrIn, *fuse.AttrOut) syscall.Errno {
	return syscall.EPERM
}

package pooltree

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

// Setxattr implements fusefs.NodeSetxattrer.
func (unchanging) Setxattr(context.Context, string, []byte, uint32) syscall.Errno {
	return syscall.EPERM
}

// Removexattr implements fusefs.NodeRemovexattrer.
func (unchanging) Removexattr(context.Context, string) syscall.Errno { return syscall.EPERM }

// noOthers is in each directory of the pool that has entries of certain kinds alone.
type noOthers struct{}

// Create implements fusefs.NodeCreater.
func (noOthers) Create(context.Context, string, uint32, uint32, *fuse.EntryOut) (*fusefs.Inode, fusefs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, syscall.EPERM
}

// Mkdir implements fusefs.NodeMkdirer.
func (noOthers) Mkdir(context.Context, string, uint32, *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, syscall.EPERM
}

// Mknod implements fusefs.NodeMknoder.
func (noOthers) Mknod(context.Context, string, uint32, uint32, *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, syscall.EPERM
}

// Symlink implements fusefs.NodeSymlinker.
func (noOthers) Symlink(context.Context, string, string, *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, syscall.EPERM
}

// Link implements fusefs.NodeLinker.
func (noOthers) Link(context.Context, fusefs.InodeEmbedder, string, *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, syscall.EPERM
}

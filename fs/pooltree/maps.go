package pooltree

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/fs/errnos"
	"rankfs/fs/xattr"
	"rankfs/meta"
)

// A mapFile is the attempt of a map that has won.
type mapFile struct {
	fusefs.Inode
	unchanging
	current
	number uint64
	is     Map
}

func (n *mapFile) attributes(a *fuse.Attr) { n.stage.job.immutable(a, n.is.Size) }

// Getattr implements fusefs.NodeGetattrer.
func (n *mapFile) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if n.stale() {
		return syscall.ESTALE
	}
	n.attributes(&out.Attr)
	return 0
}

// Open implements fusefs.NodeOpener.
func (n *mapFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if flags&unix.O_ACCMODE != unix.O_RDONLY {
		return nil, 0, syscall.EPERM
	}
	f, err := n.stage.stage.Maps.Open(ctx, n.number)
	if err != nil {
		return nil, 0, n.stage.errno("open map", meta.MapName(n.number), err)
	}
	return n.reads(f, n.stage.job.job.Use(false))
}

// Getxattr implements fusefs.NodeGetxattrer. Copies come and go, and a map that was lost is
// healed by another attempt, while the kernel has the file.
func (n *mapFile) Getxattr(ctx context.Context, attr string, dest []byte) (uint32, syscall.Errno) {
	if !strings.HasPrefix(attr, xattr.Prefix) {
		return 0, syscall.ENODATA
	}
	if n.stale() {
		return 0, syscall.ESTALE
	}
	is, err := n.stage.stage.Maps.Find(ctx, n.number)
	if err != nil {
		return 0, n.stage.errno("look up map", meta.MapName(n.number), err)
	}
	return answered(is.Attributes.Get(attr, dest))
}

// answered is an answer as the library has it of an inode.
func answered(n uint32, status fuse.Status) (uint32, syscall.Errno) { return n, syscall.Errno(status) }

// Listxattr implements fusefs.NodeListxattrer.
func (n *mapFile) Listxattr(_ context.Context, dest []byte) (uint32, syscall.Errno) {
	return answered(n.is.Attributes.Names(dest))
}

// A reads is an open file that never changes. The kernel reads it by itself if it can.
type reads struct {
	File
	done func()
}

// reads opens a file that was asked for in this generation. One of a later generation is
// for opens that look it up anew.
func (c current) reads(f File, done func()) (fusefs.FileHandle, uint32, syscall.Errno) {
	r := &reads{f, done}
	if c.stale() {
		r.close()
		return nil, 0, syscall.ESTALE
	}
	return r, fuse.FOPEN_KEEP_CACHE, 0
}

// PassthroughFd implements fusefs.FilePassthroughFder.
func (r *reads) PassthroughFd() (int, bool) { return r.Fd(), r.Fd() >= 0 }

// Read implements fusefs.FileReader.
func (r *reads) Read(_ context.Context, buf []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	return readAt(r, buf, off)
}

func readAt(r io.ReaderAt, buf []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, err := r.ReadAt(buf, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errnos.Plain(err)
	}
	return fuse.ReadResultData(buf[:n]), 0
}

// Release implements fusefs.FileReleaser.
func (r *reads) Release(context.Context) syscall.Errno {
	r.close()
	return 0
}

func (r *reads) close() {
	r.File.Release()
	r.done()
}

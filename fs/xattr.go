package fs

import (
	"context"
	"strings"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/fs/errnos"
	"rankfs/fs/xattr"
	"rankfs/meta"
)

const (
	checksum     = xattr.Prefix + "checksum"
	checksumSize = len("xxh64:0123456789abcdef")
	hostsCalled  = xattr.Prefix + "host." // and a name
)

func (t *Tree) xattrs(ctx context.Context, ino uint64) (xattr.List, error) {
	if ino < inoViews {
		return nil, nil
	}
	n, ok := t.views.byIno(ino)
	if !ok {
		return nil, meta.ErrStale
	}
	switch n.kind {
	case kindView:
		return n.dir.Totals(), nil
	case kindBatch, kindOffsets:
		return n.dir.Attributes(ctx, n.rank, n.step)
	}
	return nil, nil
}

func (t *Tree) GetXAttr(cancel <-chan struct{}, header *fuse.InHeader, attr string, dest []byte) (uint32, fuse.Status) {
	if attr == checksum {
		return t.checksum(cancel, header.NodeId, dest)
	}
	if name, ok := strings.CutPrefix(attr, hostsCalled); ok {
		return t.hostsCalled(header.NodeId, name, dest)
	}
	all, err := t.xattrs(requestContext(cancel), header.NodeId)
	if err != nil {
		return 0, errnos.Status(err)
	}
	return all.Get(attr, dest)
}

// hostsCalled answers for the names of hosts, of a view's directory and of its table of
// chunks: include/dli.h asks it what is one host.
func (t *Tree) hostsCalled(ino uint64, name string, dest []byte) (uint32, fuse.Status) {
	if ino < inoViews || name == "" {
		return 0, fuse.ENOATTR
	}
	n, ok := t.views.byIno(ino)
	switch {
	case !ok:
		return 0, fuse.Status(unix.ESTALE)
	case n.kind != kindView && n.kind != kindChunks:
		return 0, fuse.ENOATTR
	}
	return xattr.Answer(dest, strings.Join(n.dir.HostsCalled(name), ","))
}

// checksum answers for the attribute that takes the bytes of a batch. It is not listed, or
// a program that shows all attributes of a tree would fetch all of it.
func (t *Tree) checksum(cancel <-chan struct{}, ino uint64, dest []byte) (uint32, fuse.Status) {
	if ino < inoViews {
		return 0, fuse.ENOATTR
	}
	n, ok := t.views.byIno(ino)
	switch {
	case !ok:
		return 0, fuse.Status(unix.ESTALE)
	case n.kind != kindBatch:
		return 0, fuse.ENOATTR
	case len(dest) < checksumSize: // programs ask first how long it is
		return uint32(checksumSize), fuse.ERANGE
	}
	sum, err := n.dir.Checksum(requestContext(cancel), n.rank, n.step)
	if err != nil {
		return 0, t.errnos.Of("sum", n.path(), err)
	}
	return xattr.Answer(dest, sum)
}

func (t *Tree) ListXAttr(cancel <-chan struct{}, header *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	all, err := t.xattrs(requestContext(cancel), header.NodeId)
	if err != nil {
		return 0, errnos.Status(err)
	}
	return all.Names(dest)
}

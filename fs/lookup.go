package fs

import (
	"path"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A view never changes, so the kernel may cache its names for long; Drop notifies
// it when a dataset goes.
const (
	forViews = time.Hour
	forEver  = time.Duration(1<<63 - 1)
)

// nameMax bounds a name, as on any other file system.
const nameMax = 255

func (t *Tree) Lookup(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	t.count.lookups.Add(1)
	if len(name) > nameMax {
		return fuse.Status(unix.ENAMETOOLONG) // the kernel would let 1024 bytes pass
	}
	switch header.NodeId {
	case inoRoot:
		for ino, child := range map[uint64]string{inoDatasets: "datasets", inoInfo: ".rankfs", inoPool: meta.PoolDir} {
			if child != name || ino == inoPool && !t.config.Pool {
				continue
			}
			if ino == inoPool { // were it forgotten, the kernel would detach the pool's mount
				return t.entry(cancel, out, ino, forEver)
			}
			return t.entry(cancel, out, ino, forViews)
		}
		return fuse.ENOENT
	case inoInfo:
		for i, f := range t.config.Info {
			if f.Name == name {
				out.SetEntryTimeout(forViews)
				out.NodeId = inoInfoFiles + uint64(i)
				return t.attributes(cancel, out.NodeId, &out.Attr)
			}
		}
		return fuse.ENOENT
	case inoDatasets:
		d, err := t.view(name)
		if err != nil {
			return t.errnos.Of("look up view", path.Join("datasets", name), err)
		}
		return t.entry(cancel, out, d.base, forViews)
	case inoPool: // what is there shows once the pool is mounted on it, and until then it cannot be told
		return fuse.Status(unix.ENOTCONN)
	}
	n, ok := t.views.byIno(header.NodeId)
	if !ok {
		return fuse.Status(unix.ESTALE)
	}
	child, ok := n.child(name)
	if !ok {
		return fuse.ENOENT
	}
	return t.entry(cancel, out, child.ino(), forViews)
}

// view finds the directory of a name below /datasets, making it if need be.
func (t *Tree) view(name string) (*viewDir, error) {
	for {
		if d := t.views.byName(name); d != nil {
			return d, nil
		}
		drops := t.views.drops()
		v, err := t.config.Catalog.View(name)
		if err != nil {
			return nil, err
		}
		d, gone, err := t.views.add(name, v, drops, time.Now())
		if gone != nil {
			t.forget(gone)
		}
		if d != nil || err != nil {
			return d, err
		}
	}
}

// Drop makes the names of a dataset mean what the catalog says from now on.
// Files of it that are open stay readable.
func (t *Tree) Drop(dataset string) {
	t.forget(t.views.dropDataset(dataset)...)
}

// forget tells the kernel that the names are gone, from a goroutine of its own.
func (c *connection) forget(gone ...*viewDir) {
	c.notices.tell(func() {
		for _, d := range gone {
			// ENOENT: the kernel did not remember it.
			c.server.EntryNotify(inoDatasets, d.name)
		}
	})
}

// entry answers a lookup with the inode and its attributes.
func (t *Tree) entry(cancel <-chan struct{}, out *fuse.EntryOut, ino uint64, valid time.Duration) fuse.Status {
	status := t.attributes(cancel, ino, &out.Attr)
	if status == fuse.OK {
		out.NodeId = ino
		out.SetEntryTimeout(valid)
		out.SetAttrTimeout(t.attrTimeout(ino))
	}
	return status
}

// attrTimeout is how long the kernel may cache attributes. A description's text, and
// so its size, may change, as do the sizes of a view that is not settled; files
// below /.rankfs change all the time.
func (t *Tree) attrTimeout(ino uint64) time.Duration {
	if ino < inoViews {
		if ino >= inoInfoFiles {
			return 0
		}
		return forViews
	}
	n, ok := t.views.byIno(ino)
	if !ok || n.kind == kindDescription || !n.isDir() && !n.dir.Settled() {
		return 0
	}
	return forViews
}

func (t *Tree) GetAttr(cancel <-chan struct{}, input *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	status := t.attributes(cancel, input.NodeId, &out.Attr)
	if status == fuse.OK {
		out.SetTimeout(t.attrTimeout(input.NodeId))
	}
	return status
}

func (t *Tree) attributes(cancel <-chan struct{}, ino uint64, a *fuse.Attr) fuse.Status {
	isDir, size, made := true, int64(0), t.born
	if ino >= inoViews {
		n, ok := t.views.byIno(ino)
		if !ok {
			return fuse.Status(unix.ESTALE)
		}
		var err error
		if size, err = n.size(requestContext(cancel)); err != nil {
			return t.errnos.Of("look up", n.path(), err)
		}
		isDir, made = n.isDir(), n.dir.made
	} else if ino >= inoInfoFiles {
		i := int(ino - inoInfoFiles)
		if i >= len(t.config.Info) {
			return fuse.ENOENT
		}
		isDir, size = false, int64(len(t.config.Info[i].Content()))
	}
	a.Ino = ino
	a.Size = uint64(size)
	a.Blocks = (a.Size + 511) / 512
	a.Blksize = 1 << 20 // what a copy should ask for at a time
	a.Nlink = 1
	a.Mode = modeFile
	if isDir {
		a.Nlink = 2
		a.Mode = modeDir
	}
	a.Mode &^= t.config.Umask & 0777
	a.Uid, a.Gid = t.config.UID, t.config.GID
	a.SetTimes(&made, &made, &made)
	return fuse.OK
}

func (t *Tree) StatFs(cancel <-chan struct{}, header *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Bsize, out.Frsize, out.NameLen = 4096, 4096, nameMax
	return fuse.OK
}

// Forget has nothing to do: nothing is remembered per file.
func (t *Tree) Forget(nodeid, nlookup uint64) {}

package fs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"rankfs/meta"
)

func (t *Tree) OpenDir(cancel <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	l, status := t.list(input.NodeId)
	if status != fuse.OK {
		return status
	}
	l.ino = input.NodeId
	out.Fh = t.handles.add(handle{listing: l})
	if l.parent >= inoViews {
		// A rank's batches never change: let the kernel keep the listing.
		out.OpenFlags = fuse.FOPEN_CACHE_DIR | fuse.FOPEN_KEEP_CACHE
	}
	return fuse.OK
}

func (t *Tree) ReleaseDir(input *fuse.ReleaseIn) { t.handles.remove(input.Fh) }

func (t *Tree) list(ino uint64) (*listing, fuse.Status) {
	switch ino {
	case inoRoot:
		names, inos := []string{".rankfs", "datasets"}, []uint64{inoInfo, inoDatasets}
		if t.config.Pool {
			names, inos = append(names, meta.PoolDir), append(inos, inoPool)
		}
		return static(inoRoot, true, names, inos), fuse.OK
	case inoPool:
		return static(inoRoot, true, nil, nil), fuse.OK // as long as nothing is mounted on it
	case inoInfo:
		var names []string
		var inos []uint64
		for i, f := range t.config.Info {
			names, inos = append(names, f.Name), append(inos, inoInfoFiles+uint64(i))
		}
		return static(inoRoot, false, names, inos), fuse.OK
	case inoDatasets:
		names := t.config.Catalog.Names()
		return static(inoRoot, true, names, make([]uint64, len(names))), fuse.OK
	}
	n, ok := t.views.byIno(ino)
	switch {
	case !ok:
		return nil, fuse.Status(syscall.ESTALE)
	case n.kind == kindView:
		return listView(n.dir), fuse.OK
	case n.kind == kindRank:
		return listRank(n), fuse.OK
	}
	return nil, fuse.ENOTDIR
}

// ReadDir continues at the offset of the last entry read: offset k stands before entry k,
// counting "." and ".." as 0 and 1.
func (t *Tree) ReadDir(cancel <-chan struct{}, input *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return t.readDir(input, func(e fuse.DirEntry) bool { return out.AddDirEntry(e) })
}

// ReadDirPlus adds the attributes, for an ls -l. The kernel sends it for the first
// page of a listing, and further as long as a program stats the listed files.
func (t *Tree) ReadDirPlus(cancel <-chan struct{}, input *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return t.readDir(input, func(e fuse.DirEntry) bool {
		entry := out.AddDirLookupEntry(e)
		if entry == nil {
			return false
		}
		if e.Ino != 0 && e.Name != "." && e.Name != ".." {
			t.entry(cancel, entry, e.Ino, forViews) // without: the kernel looks it up
		}
		return true
	})
}

func (t *Tree) readDir(input *fuse.ReadIn, add func(fuse.DirEntry) bool) fuse.Status {
	h, ok := t.handles.get(input.Fh)
	if !ok || h.listing == nil {
		return fuse.EBADF
	}
	l := h.listing
	for at := input.Offset; at < l.length+2; at++ {
		e := fuse.DirEntry{Name: ".", Ino: l.ino, Mode: syscall.S_IFDIR, Off: at + 1}
		if at == 1 {
			e.Name, e.Ino = "..", l.parent
		} else if at > 1 {
			var isDir bool
			e.Ino, isDir, l.name = l.entry(at-2, l.name[:0])
			e.Name = string(l.name)
			if !isDir {
				e.Mode = syscall.S_IFREG
			}
		}
		if !add(e) {
			break
		}
	}
	return fuse.OK
}

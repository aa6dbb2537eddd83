package disks_test

import (
	"context"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// A glass is a file system in which a directory is seen, and what is done to
// that: step is called after each half of a write, and all else that changes
// it. Names are told of when listing is closed.
type glass struct {
	behind, path string
	step         func()
	listing      chan struct{}
}

type pane struct {
	*fs.LoopbackNode
	glass *glass
}

func (p *pane) WrapChild(_ context.Context, node fs.InodeEmbedder) fs.InodeEmbedder {
	return &pane{node.(*fs.LoopbackNode), p.glass}
}

func newGlass(t testing.TB, step func(behind string)) *glass {
	t.Helper()
	g := &glass{behind: t.TempDir(), path: newMountPoint(t) + "/mnt", listing: make(chan struct{})}
	g.step = func() { step(g.behind) }
	root, err := fs.NewLoopbackRoot(g.behind)
	must(t, err)
	server, err := fs.Mount(g.path, &pane{root.(*fs.LoopbackNode), g}, &fs.Options{MountOptions: fuse.MountOptions{DirectMount: true}})
	must(t, err)
	t.Cleanup(func() { must(t, server.Unmount()) })
	return g
}

func (p *pane) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	defer p.glass.step()
	inode, f, _, errno := p.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return inode, &seen{f.(*fs.LoopbackFile), p.glass}, 0, 0
}

func (p *pane) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, _, errno := p.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &seen{f.(*fs.LoopbackFile), p.glass}, 0, 0
}

// A seen file is not handed to the kernel.
type seen struct {
	*fs.LoopbackFile
	glass *glass
}

func (*seen) PassthroughFd() (int, bool) { return 0, false }

func (s *seen) Write(ctx context.Context, b []byte, off int64) (uint32, syscall.Errno) {
	half := len(b) / 2
	for _, part := range [][]byte{b[:half], b[half:]} {
		if _, errno := s.LoopbackFile.Write(ctx, part, off); errno != 0 {
			return 0, errno
		}
		off += int64(len(part))
		s.glass.step()
	}
	return uint32(len(b)), 0
}

func (s *seen) Writev(ctx context.Context, parts [][]byte, off int64) (uint32, syscall.Errno) {
	return s.Write(ctx, slices.Concat(parts...), off)
}

func (s *seen) Allocate(ctx context.Context, off, size uint64, mode uint32) syscall.Errno {
	defer s.glass.step()
	return s.LoopbackFile.Allocate(ctx, off, size, mode)
}

func (p *pane) Rename(ctx context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	defer p.glass.step()
	return p.LoopbackNode.Rename(ctx, name, to, newName, flags)
}

func (p *pane) Unlink(ctx context.Context, name string) syscall.Errno {
	defer p.glass.step()
	return p.LoopbackNode.Unlink(ctx, name)
}

func (p *pane) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	names, _, errno := p.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &listing{names.(fs.FileReaddirenter), names.(fs.FileReleasedirer), p.glass.listing}, 0, 0
}

type listing struct {
	fs.FileReaddirenter
	fs.FileReleasedirer
	begun chan struct{}
}

func (l *listing) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	<-l.begun
	return l.FileReaddirenter.Readdirent(ctx)
}

// The files are copied as they are at each write, of slabs and of the index,
// and at each change of a name. In none of the copies is anything served that
// is not whole, and none lacks what had its name and was let be.
func TestCrashAtEachWrite(t *testing.T) {
	const size = 300 << 10 // three writes
	states := newClones(t)
	g := newGlass(t, states.add)
	close(g.listing)
	c := one(g.path, 1<<20) // three slabs
	c.Save = time.Hour
	k := start(t, c)
	for n := range 5 {
		if n == 3 {
			k.stop() // an index is written
			k = start(t, c)
		}
		if n > 2 {
			states.expect(-1) // one makes way
		}
		k.put(n, size)
		states.expect(1)
	}
	k.stop()
	if n := len(states.taken()); n < 5*(2+6+1) {
		t.Fatalf("%d states", n)
	}
	for _, s := range states.taken() {
		if there, stats := reopen(t, s.dir, 5, size); there < s.least || stats.Damaged+stats.Failed > 0 {
			t.Errorf("%s: %d slabs, want %d or more: %+v", s.dir, there, s.least, stats)
		}
	}
}

// What the index tells of is there as soon as it has been read, however long
// it takes to look through the names; nothing is written before.
func TestWarmBeforeNamesAreSeen(t *testing.T) {
	g := newGlass(t, func(string) {})
	left := start(t, one(g.behind, 1<<20))
	left.putAll(0, 20, 5000)
	left.stop()
	c := one(g.path, 1<<20)
	c.Patience = 20 * time.Second
	k := start(t, c)
	for n := range 20 {
		if !k.Has(key(n)) || !k.got(n, 5000) {
			t.Errorf("slab %d is not there", n)
		}
	}
	put := make(chan error)
	go func() { put <- k.Put(key(30), content(key(30), 5000), nil) }()
	select {
	case err := <-put:
		t.Errorf("written before the names were seen: %v", err)
	case <-time.After(20 * time.Millisecond): // it would be quicker
	}
	close(g.listing)
	if err := <-put; err != nil || !k.got(30, 5000) {
		t.Errorf("written afterwards: %v", err)
	}
	k.stop()
}

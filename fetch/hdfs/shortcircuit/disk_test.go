package shortcircuit_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/fetch/hdfs/shortcircuit"
	"rankfs/test/eventually"
)

// A badDisk has one file, of which some reads are answered and the next ones wait. Its
// filesystem does not tell what is in memory.
type badDisk struct {
	fs.Inode
	content []byte

	mu     sync.Mutex
	left   int // reads that are answered
	open   chan struct{}
	mended bool
}

// newBadDisk is mounted by this process, which looks at it by system calls alone.
func newBadDisk(t *testing.T, content []byte) (d *badDisk, name string) {
	t.Helper()
	d = &badDisk{content: content, open: make(chan struct{})}
	dir, root := t.TempDir(), &fs.Inode{}
	server, err := fs.Mount(dir, root, &fs.Options{
		OnAdd: func(ctx context.Context) {
			root.AddChild("blk", root.NewPersistentInode(ctx, d, fs.StableAttr{Mode: syscall.S_IFREG}), false)
		},
		MountOptions: fuse.MountOptions{FsName: "bad", DirectMount: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Errorf("unmount the bad disk: %v", err)
		}
	})
	return d, filepath.Join(dir, "blk")
}

// Getattr implements fs.NodeGetattrer.
func (d *badDisk) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = syscall.S_IFREG|0o644, uint64(len(d.content))
	return 0
}

// Open implements fs.NodeOpener.
func (d *badDisk) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

// Read implements fs.NodeReader.
func (d *badDisk) Read(_ context.Context, _ fs.FileHandle, p []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if !d.answers() {
		<-d.open
	}
	off = min(off, int64(len(d.content)))
	return fuse.ReadResultData(d.content[off:min(off+int64(len(p)), int64(len(d.content)))]), 0
}

func (d *badDisk) answers() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left--
	return d.left >= 0
}

// mend has all reads answered.
func (d *badDisk) mend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.mended {
		d.mended = true
		close(d.open)
	}
}

// passBlocking passes files that are opened as a datanode does.
func passBlocking(data, sums string) func(*net.UnixConn) {
	return func(c *net.UnixConn) {
		id, ok := asked(c)
		if !ok {
			return
		}
		var fds []int
		for _, name := range []string{data, namedFor(id, sums)} {
			fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				panic(err)
			}
			defer unix.Close(fd)
			fds = append(fds, fd)
		}
		c.Write(status(named("SUCCESS"), ""))
		c.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil)
		c.Read(make([]byte, 1))
	}
}

// A disk may fall silent at any read: the reader learns of it, and his memory is his own
// from then on, whatever the disk answers later.
func TestDiskFallsSilent(t *testing.T) {
	const size = 600 << 10 // more than is read at once
	x := newReplica(t, size, 512, 2)
	for answered := range 5 {
		bad, name := newBadDisk(t, x.content)
		d := newDatanode(t, passBlocking(name, x.sums))
		c := shortcircuit.New(shortcircuit.Config{Path: d.socket, BackOff: time.Hour, Age: time.Hour, Patience: 100 * time.Millisecond})
		t.Cleanup(c.Close)
		t.Cleanup(bad.mend)
		bad.left = answered
		p, got := make([]byte, size), make(chan error, 1)
		go func() { got <- read(c, block(1, size), p, 0) }()
		eventually.True(t, "the reader learns that the disk is silent", func() bool { return len(got) > 0 })
		if err := <-got; !errors.Is(err, syscall.ETIMEDOUT) {
			t.Fatalf("after %d reads: %v", answered, err)
		}
		other := bytes.Repeat([]byte{'x'}, size)
		copy(p, other)
		bad.mend()
		id, again := uint64(2), make([]byte, size)
		eventually.True(t, "the disk is asked again", func() bool { id++; return read(c, block(id, size), again, 0) == nil })
		if !bytes.Equal(again, x.content) {
			t.Errorf("after %d reads, from the disk that is mended: other bytes", answered)
		}
		if !bytes.Equal(p, other) {
			t.Errorf("after %d reads a late answer is in memory that was given up", answered)
		}
	}
}

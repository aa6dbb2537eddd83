package hdfs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// A badDisk has one file, of which reads, closes and looks wait while a test wants that, or
// reads fail. It is mounted by this process, which never looks at it.
type badDisk struct {
	fs.Inode
	content              []byte
	reads, closes, looks gate
	broken               atomic.Bool
}

// Getattr implements fs.NodeGetattrer.
func (d *badDisk) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	d.looks.pass()
	out.Mode, out.Size = syscall.S_IFREG|0o644, uint64(len(d.content))
	return 0
}

// Open implements fs.NodeOpener.
func (d *badDisk) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

// Read implements fs.NodeReader.
func (d *badDisk) Read(_ context.Context, _ fs.FileHandle, p []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	d.reads.pass()
	if d.broken.Load() {
		return nil, syscall.EIO
	}
	off = min(off, int64(len(d.content)))
	return fuse.ReadResultData(d.content[off:min(off+int64(len(p)), int64(len(d.content)))]), 0
}

// Flush implements fs.NodeFlusher.
func (d *badDisk) Flush(context.Context, fs.FileHandle) syscall.Errno {
	d.closes.pass()
	return 0
}

// A gate holds up what comes to it while it is shut.
type gate struct {
	mu   sync.RWMutex
	came atomic.Int64 // since it was shut last
}

func (g *gate) pass() {
	g.came.Add(1)
	g.mu.RLock()
	defer g.mu.RUnlock()
}

// shut shuts it until the test ends, or opens it.
func (g *gate) shut(t *testing.T) (open func()) {
	g.mu.Lock()
	g.came.Store(0)
	open = sync.OnceFunc(g.mu.Unlock)
	t.Cleanup(open)
	return open
}

// await waits until something is held up there.
func (g *gate) await(t *testing.T, what string) {
	t.Helper()
	eventually.Within(t, toolTime, what, func() bool { return g.came.Load() > 0 })
}

// onBadDisk has a replica be on a bad disk, under the name that its datanode knows.
func onBadDisk(t *testing.T, h *cluster.Host, block uint64) *badDisk {
	t.Helper()
	name, err := replica(h, block)
	check(t, err)
	d := new(badDisk)
	d.content, err = os.ReadFile(name)
	check(t, err)
	dir := filepath.Join(t.TempDir(), "disk")
	check(t, os.Mkdir(dir, 0o755))
	root := &fs.Inode{}
	server, err := fs.Mount(dir, root, &fs.Options{
		OnAdd: func(ctx context.Context) {
			root.AddChild("data", root.NewPersistentInode(ctx, d, fs.StableAttr{Mode: syscall.S_IFREG}), false)
		},
		MountOptions: fuse.MountOptions{FsName: "bad", DirectMount: true},
	})
	check(t, err)
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Errorf("unmount the bad disk: %v", err)
		}
	})
	check(t, os.Remove(name))
	check(t, os.Symlink(fmt.Sprintf("/proc/%d/root%s/data", os.Getpid(), dir), name))
	return d
}

// beside makes a dataset of one block on a bad disk of the job's host. What is read of it
// is not in the cache.
func (j *job) beside(t *testing.T, file, content string, replicas int) (disk *badDisk, block uint64) {
	t.Helper()
	view := filepath.Base(file)
	j.Host.Put(t, file, []byte(content), replicas, 1<<20)
	j.create(view, file)
	all, err := j.c.Blocks(t.Context(), file)
	check(t, err)
	disk = onBadDisk(t, j.Host, all[0].ID)
	j.Do("cache", "evict", view)
	return disk, all[0].ID
}

// idle makes and reads a dataset of one block on a disk that is well.
func (j *job) idle(t *testing.T, file, content string) (block uint64) {
	t.Helper()
	view := filepath.Base(file)
	j.Host.Put(t, file, []byte(content), 1, 1<<20)
	j.create(view, file)
	j.readsByFile(view, content)
	all, err := j.c.Blocks(t.Context(), file)
	check(t, err)
	return all[0].ID
}

// awaitGivenUp waits until the daemon has no file of a block open.
func (j *job) awaitGivenUp(block uint64) {
	j.t.Helper()
	eventually.Within(j.t, waitTime, "files without a reader are given up", func() bool {
		return j.openBlocks()[fmt.Sprintf("blk_%d", block)] == 0
	})
}

// giveUp has the daemon close a block's files, once it looks at them.
func (j *job) giveUp(block uint64) {
	j.t.Helper()
	sums, err := j.Host.Sums(block)
	j.check(err)
	j.check(os.Chmod(sums, 0o600))
}

// A block whose disk answers no read comes from another replica, and while such a read
// waits, or a look at a file, or a close, ranks that read other blocks go on.
func TestLocalBlocksThatStall(t *testing.T) {
	c := cluster.MountsAlone(t)
	dir := c.Dir(t)
	j := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile()).job(t, dir+"/well", lines(5000), twice)
	content := lines(200)

	for _, name := range []string{"looks", "closes"} {
		disk, id := j.beside(t, dir+"/"+name, content, 1)
		well := j.idle(t, dir+"/well-beside-"+name, content)
		if text, err := j.place.read(name); err != nil || text != content {
			t.Errorf("%s: a block on a disk has other bytes, or an error: %v", name, err)
		}
		var open func()
		if name == "looks" { // which are not asked of a disk
			open = disk.looks.shut(t)
			j.giveUp(id)
			j.awaitGivenUp(id)
		} else {
			open = disk.closes.shut(t)
			j.giveUp(id)
			disk.closes.await(t, "a close stalls")
		}
		j.giveUp(well)
		j.awaitGivenUp(well)
		j.askAnew()
		j.byFile("beside " + name + " that stall")
		open()
	}

	disk, _ := j.beside(t, dir+"/reads", content, twice)
	open := disk.reads.shut(t)
	got := make(chan string, 1)
	go func() {
		text, err := j.place.read("reads")
		got <- fmt.Sprint(text, err)
	}()
	disk.reads.await(t, "the disk is read")
	j.byFile("beside a read that stalls")
	eventually.Within(t, toolTime, "another replica is read", func() bool { return len(got) > 0 })
	if <-got != fmt.Sprint(content, error(nil)) {
		t.Error("what stalled has other bytes, or an error")
	}
	open()
	j.end()
}

// A block whose disk cannot read it comes from another replica; no replica is held for
// corrupt, and other blocks are read by file as before.
func TestLocalBlocksOnABrokenDisk(t *testing.T) {
	c := cluster.MountsAlone(t)
	dir := c.Dir(t)
	j := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile()).job(t, dir+"/well", lines(5000), twice)
	content := lines(200)
	disk, _ := j.beside(t, dir+"/broken", content, twice)
	if text, err := j.place.read("broken"); err != nil || text != content {
		t.Errorf("before it breaks: other bytes, or %v", err)
	}
	before := j.status().HDFS
	disk.broken.Store(true)
	const reads = 2 // of which the second does not ask for the files
	for range reads {
		j.Do("cache", "evict", "broken")
		if text, err := j.place.read("broken"); err != nil || text != content {
			t.Errorf("from a broken disk: other bytes, or %v", err)
		}
	}
	j.says("from a broken disk", "short-circuit; 1 block over TCP: ", "input/output error")
	j.goOn("beside a broken disk")
	s := j.status().HDFS
	if n, byFile := s.Bytes-before.Bytes, s.Files-before.Files; s.Corrupt != 0 || s.Failures == 0 || s.Remote == before.Remote || n-byFile > uint64(2*reads*len(content)) {
		t.Errorf("status says %+v, and %+v before", s, before)
	}
	j.end()
}

package diskdir_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/meta/diskdir"
	"rankfs/meta/slowdisk"
)

// A noted file system notes what is done to the files and directories of it; of several writes in
// a row one. When it is full it takes no bytes.
type noted struct {
	mu    sync.Mutex // under it:
	calls []string
	full  bool
}

// note notes a call, and says whether the file system is full.
func (n *noted) note(call ...string) (full bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if line := strings.Join(call, " "); call[0] != "write" || len(n.calls) == 0 || n.calls[len(n.calls)-1] != line {
		n.calls = append(n.calls, line)
	}
	return n.full
}

// take are the calls since it was asked last.
func (n *noted) take() (calls []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	calls, n.calls = n.calls, nil
	return calls
}

type notedNode struct {
	*fs.LoopbackNode
	in *noted
}

func (n *notedNode) WrapChild(_ context.Context, node fs.InodeEmbedder) fs.InodeEmbedder {
	return &notedNode{node.(*fs.LoopbackNode), n.in}
}

func (n *notedNode) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	n.in.note("create", name)
	inode, f, _, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return inode, &notedFile{f.(*fs.LoopbackFile), name, n.in}, 0, 0
}

func (n *notedNode) Rename(ctx context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	n.in.note("rename", name, newName)
	return n.LoopbackNode.Rename(ctx, name, to, newName, flags)
}

func (n *notedNode) Unlink(ctx context.Context, name string) syscall.Errno {
	n.in.note("remove", name)
	return n.LoopbackNode.Unlink(ctx, name)
}

func (n *notedNode) OpendirHandle(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return notedDir{n}, 0, 0
}

type notedDir struct{ of *notedNode }

func (d notedDir) Fsyncdir(context.Context, uint32) syscall.Errno {
	d.of.in.note("sync", d.of.Path(nil))
	return 0
}

type notedFile struct {
	*fs.LoopbackFile
	name string
	in   *noted
}

// PassthroughFd has the kernel ask for each call.
func (*notedFile) PassthroughFd() (int, bool) { return 0, false }

func (f *notedFile) Allocate(ctx context.Context, off, size uint64, mode uint32) syscall.Errno {
	f.in.note("allocate", f.name)
	return f.LoopbackFile.Allocate(ctx, off, size, mode)
}

func (f *notedFile) Write(ctx context.Context, b []byte, off int64) (uint32, syscall.Errno) {
	if f.in.note("write", f.name) {
		return 0, syscall.ENOSPC
	}
	return f.LoopbackFile.Write(ctx, b, off)
}

func (f *notedFile) Writev(ctx context.Context, parts [][]byte, off int64) (uint32, syscall.Errno) {
	return f.Write(ctx, slices.Concat(parts...), off)
}

func (f *notedFile) Fsync(context.Context, uint32) syscall.Errno {
	f.in.note("sync", f.name)
	return 0
}

// newNoted is a file system in which there is a directory dir, and its root.
func newNoted(t *testing.T) (*noted, *os.Root) {
	t.Helper()
	n, behind, path := new(noted), t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(behind, "dir"), 0o700))
	loopback, err := fs.NewLoopbackRoot(behind)
	must(t, err)
	server, err := fs.Mount(path, &notedNode{loopback.(*fs.LoopbackNode), n}, &fs.Options{MountOptions: fuse.MountOptions{DirectMount: true}})
	must(t, err)
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil { // a file is open still
			t.Error(err)
			_ = unix.Unmount(path, unix.MNT_FORCE|unix.MNT_DETACH)
		}
	})
	root, err := os.OpenRoot(path)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return n, root
}

// A durable file is on its disk before it has its name, and then its name is, once for all files
// that get theirs together; what is large goes there amid the writing. Another is never synced.
func TestFilesLastIfTheyAreDurable(t *testing.T) {
	for _, tt := range []struct {
		name    string
		durable bool
		blocks  int64
		bytes   int
		files   []string
		calls   string
	}{
		{"durable", true, 0, 5000, []string{"a"}, "create a-, write a-, sync a-, rename a- a, sync dir"},
		{"not durable", false, 0, 5000, []string{"a"}, "create a-, write a-, rename a- a"},
		{"with its blocks", false, 5000, 5000, []string{"a"}, "create a-, allocate a-, write a-, rename a- a"},
		{"large and durable", true, 0, 65 << 20, []string{"a"}, "create a-, write a-, sync a-, write a-, sync a-, rename a- a, sync dir"},
		{"large", false, 0, 65 << 20, []string{"a"}, "create a-, write a-, rename a- a"},
		{"two", true, 0, 5000, []string{"a", "b"}, "create a-, write a-, create b-, write b-, sync a-, sync b-, rename a- a, rename b- b, sync dir"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			disk, root := newNoted(t)
			content := bytes.Repeat([]byte("0123456789abcdef"), tt.bytes/16)
			var files []*diskdir.File
			for _, name := range tt.files {
				f := &diskdir.File{Dir: root, Unfinished: "dir/" + name + "-", Name: "dir/" + name, Durable: tt.durable}
				must(t, f.Create(nil, os.O_EXCL, 0o600, tt.blocks))
				if _, err := io.Copy(f.Writer(nil, 0), bytes.NewReader(content)); err != nil {
					t.Fatal(err)
				}
				files = append(files, f)
			}
			must(t, diskdir.Seal(nil, files...))
			calls := disk.take()
			if len(tt.files) > 1 && len(calls) > 6 {
				slices.Sort(calls[4:6]) // the syncs, at the same time
			}
			if got := strings.Join(calls, ", "); got != tt.calls {
				t.Errorf("the disk is asked to\n%s, want\n%s", got, tt.calls)
			}
			for i, name := range tt.files {
				must(t, files[i].Discard(nil)) // which leaves what has its name
				if got, err := root.ReadFile("dir/" + name); err != nil || len(got) < 5000-16 || !bytes.HasPrefix(got, content[:16]) {
					t.Errorf("%s has %d bytes: %v", name, len(got), err)
				}
			}
		})
	}
}

// What a file takes is given back when it is discarded, whatever has failed of it, and nothing is left
// of it; a file that has its name keeps both.
func TestWhatIsDiscardedTakesNoRoom(t *testing.T) {
	disk, root := newNoted(t)
	room := diskdir.Budget{Max: 100}
	file := func(name string) *diskdir.File {
		t.Helper()
		if !room.Count(60) {
			t.Fatal("there is no room")
		}
		return &diskdir.File{Dir: root, Unfinished: name + "-", Name: name, Room: &room, Takes: 60}
	}
	left := func(when string, used int64, calls ...string) {
		t.Helper()
		if u, _ := room.Use(); u != used {
			t.Errorf("%s %d bytes are used, want %d", when, u, used)
		}
		if got := disk.take(); !slices.Equal(got, calls) {
			t.Errorf("%s the disk was asked to %q, want %q", when, got, calls)
		}
	}
	nowhere := file("nowhere/a")
	if err := nowhere.Create(nil, os.O_EXCL, 0o600, 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is made where there is no directory: %v", err)
	}
	must(t, nowhere.Discard(nil))
	left("when it was not made", 0)

	f := file("a")
	must(t, f.Create(nil, os.O_EXCL, 0o600, 0))
	f.Count(70)
	left("when it takes more", 70, "create a-")
	disk.mu.Lock()
	disk.full = true
	disk.mu.Unlock()
	if err := f.WriteAt(nil, []byte("words"), 0); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("it is written to a disk that is full: %v", err)
	}
	must(t, f.Discard(nil))
	left("when a write has failed", 0, "write a-", "remove a-")

	f = file("a")
	must(t, f.Create(nil, os.O_EXCL, 0o600, 0), diskdir.Seal(nil, f), f.Discard(nil))
	left("when it has its name", 60, "create a-", "rename a- a")
}

// Of memory that may be another's by then no more is written when no caller waits for it, and the
// file gets no name. It is discarded all the same.
func TestNothingIsWrittenOnceTheCallerLeft(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	must(t, err)
	defer root.Close()
	room := diskdir.Budget{Max: 100}
	f := &diskdir.File{Dir: root, Unfinished: "a-", Name: "a", Room: &room}
	must(t, f.Create(nil, os.O_EXCL, 0o600, 0))
	f.Count(60)
	var disk slowdisk.Disk
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	left := make(chan struct{})
	_, err = slowdisk.Run(ctx, &disk, time.Minute, slowdisk.Plain(func(w *slowdisk.Work) error {
		<-left
		if err := f.WriteAt(w, make([]byte, 9<<20), 0); err == nil {
			t.Error("it is written")
		}
		if info, err := f.Bytes.Stat(); err != nil || info.Size() != 0 {
			t.Errorf("%d bytes are written: %v", info.Size(), err)
		}
		if err := diskdir.Seal(w, f); err == nil {
			t.Error("it has its name")
		}
		return f.Discard(w)
	}), nil)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(left)
	disk.Wait()
	for _, name := range []string{"a-", "a"} {
		if _, err := root.Stat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("there is %s: %v", name, err)
		}
	}
	if used, _ := room.Use(); used != 0 {
		t.Errorf("%d bytes are used", used)
	}
}

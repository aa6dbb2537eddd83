package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// A slowSource has files whose bytes come at a rate, however many ask for them, and
// which the kernel does not keep: each read is one of the source's. It stands for
// a source that sets the pace on a machine where nothing else is slow.
type slowSource struct {
	fs.Inode
	files map[string]*os.File
	rate  float64 // bytes a second, of all files together

	mu struct {
		sync.Mutex
		free  time.Time // when what was asked for so far has been sent
		asked int       // reads that wait
		since time.Time // one does
		busy  time.Duration
		bytes float64
	}
}

// A slowFile is one of them.
type slowFile struct {
	fs.Inode
	file   *os.File
	number uint64
	source *slowSource
}

// OnAdd implements fs.NodeOnAdder.
func (s *slowSource) OnAdd(ctx context.Context) {
	number := uint64(1)
	for name, f := range s.files {
		number++
		s.AddChild(name, s.NewPersistentInode(ctx, &slowFile{file: f, number: number, source: s}, fs.StableAttr{Ino: number}), false)
	}
}

// slow serves files at a rate until the bench ends, by their names in a directory.
func (b *bench) slow(rate float64, files ...string) (s *slowSource, dir string) {
	s = &slowSource{files: make(map[string]*os.File), rate: rate}
	for _, name := range files {
		f, err := os.Open(name)
		check(err)
		s.files[filepath.Base(name)] = f
	}
	dir, err := os.MkdirTemp(b.dir, "slow-")
	check(err)
	var options fs.Options
	options.MaxWrite, options.FsName, options.DirectMount = 1<<19, "bench", true
	server, err := fs.Mount(dir, s, &options)
	check(err)
	b.served = append(b.served, func() {
		server.Unmount()
		for _, f := range s.files {
			f.Close()
		}
	})
	return s, dir
}

// Getattr implements fs.NodeGetattrer.
func (s *slowFile) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	var st syscall.Stat_t
	if err := syscall.Fstat(int(s.file.Fd()), &st); err != nil {
		return fs.ToErrno(err)
	}
	out.FromStat(&st)
	out.Ino = s.number
	return 0
}

// Open implements fs.NodeOpener.
func (s *slowFile) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

// Read implements fs.NodeReader: the first reader to come is served first.
func (s *slowFile) Read(_ context.Context, _ fs.FileHandle, dst []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, err := s.file.ReadAt(dst, off)
	if err != nil && n == 0 && !errors.Is(err, io.EOF) {
		return nil, fs.ToErrno(err)
	}
	time.Sleep(s.source.ask(n))
	s.source.sent(n)
	return fuse.ReadResultData(dst[:n]), 0
}

// ask returns how long it takes until that many more bytes are sent.
func (s *slowSource) ask(bytes int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.mu.free.Before(now) {
		s.mu.free = now
	}
	if s.mu.asked++; s.mu.asked == 1 {
		s.mu.since = now
	}
	s.mu.free = s.mu.free.Add(time.Duration(float64(bytes) / s.rate * float64(time.Second)))
	return s.mu.free.Sub(now)
}

func (s *slowSource) sent(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.bytes += float64(bytes)
	if s.mu.asked--; s.mu.asked == 0 {
		s.mu.busy += time.Since(s.mu.since)
	}
}

// speed is what came of the rate since it was asked last: less, on a machine that
// has other things to do.
func (s *slowSource) speed() (perSecond float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.mu.asked > 0 {
		s.mu.busy += now.Sub(s.mu.since)
		s.mu.since = now
	}
	perSecond = s.mu.bytes / s.mu.busy.Seconds()
	s.mu.bytes, s.mu.busy = 0, 0
	return perSecond
}

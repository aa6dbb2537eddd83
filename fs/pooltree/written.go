package pooltree

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/fs/errnos"
)

// A written is an open file that may be written. The kernel reads and writes it by
// itself, by a descriptor of its own; the daemon's only reads, as one that writes would
// stand in the way of the lease that a commit takes. Where the kernel cannot, the daemon
// opens another to write. The lock guards the writer, and is held while it is opened, so
// that there is one.
type written struct {
	file *os.File
	done func()

	// Reserve has the file count as one of so many bytes, if there is more than the file
	// system to ask.
	reserve func(ctx context.Context, bytes int64) (undo func(), err error)

	mu struct {
		sync.Mutex
		writer *os.File
	}
}

// writes reports whether an open with such flags is one to write.
func writes(flags uint32) bool {
	return flags&unix.O_ACCMODE != unix.O_RDONLY || flags&unix.O_TRUNC != 0
}

func openWritten(root opener, name string, flags uint32) (*written, error) {
	if flags&unix.O_TRUNC != 0 {
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	f, err := root.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return &written{file: f}, nil
}

func createWritten(root opener, name string, flags, mode uint32) (*written, error) {
	const kept = unix.O_EXCL | unix.O_TRUNC
	f, err := root.OpenFile(name, int(flags&kept)|os.O_CREATE|os.O_RDWR, os.FileMode(mode&0777))
	if err != nil {
		return nil, err
	}
	err = f.Chmod(permissions(mode)) // whatever the daemon's umask is
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return openWritten(root, name, 0)
}

// attributes are the attributes of the file, whatever name it has.
func (w *written) attributes(out *fuse.AttrOut) syscall.Errno {
	info, err := w.file.Stat()
	if err != nil {
		return errnos.Plain(err)
	}
	out.FromStat(info.Sys().(*syscall.Stat_t))
	return 0
}

// use says that a file of a job is open.
func use(j Uses, flags uint32) (done func()) {
	if flags&unix.O_ACCMODE == unix.O_RDONLY {
		return j.Use(false)
	}
	return j.Write()
}

// PassthroughFd implements fusefs.FilePassthroughFder.
func (w *written) PassthroughFd() (int, bool) { return int(w.file.Fd()), true }

// Read implements fusefs.FileReader.
func (w *written) Read(_ context.Context, buf []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	return readAt(w.file, buf, off)
}

// Write implements fusefs.FileWriter, where the kernel does not write by itself.
func (w *written) Write(_ context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	f, err := w.writer()
	if err != nil {
		return 0, errnos.Plain(err)
	}
	n, err := f.WriteAt(data, off)
	return uint32(n), errnos.Plain(err)
}

// number is the file's among openFiles.
func (w *written) number() string { return strconv.Itoa(int(w.file.Fd())) }

func (w *written) writer() (*os.File, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.writer == nil {
		f, err := openFiles{}.OpenFile(w.number(), os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		w.mu.writer = f
	}
	return w.mu.writer, nil
}

// Fsync implements fusefs.FileFsyncer.
func (w *written) Fsync(context.Context, uint32) syscall.Errno { return errnos.Plain(w.file.Sync()) }

// Allocate implements fusefs.FileAllocater.
func (w *written) Allocate(ctx context.Context, off, size uint64, mode uint32) syscall.Errno {
	undo := func() {}
	if w.reserve != nil {
		var err error
		if undo, err = w.reserve(ctx, int64(off+size)); err != nil {
			return errnos.Plain(err)
		}
	}
	f, err := w.writer()
	if err == nil {
		err = unix.Fallocate(int(f.Fd()), mode, int64(off), int64(size))
	}
	if err != nil {
		undo()
	}
	return errnos.Plain(err)
}

// growing asks whether there may be what the file has not yet.
func (w *written) growing(may func(bytes int64) error) func(ctx context.Context, bytes int64) (undo func(), err error) {
	return func(_ context.Context, bytes int64) (func(), error) {
		info, err := w.file.Stat()
		if err == nil {
			err = may(max(0, bytes-info.Size()))
		}
		return func() {}, err
	}
}

// Lseek implements fusefs.FileLseeker, for holes.
func (w *written) Lseek(_ context.Context, off uint64, whence uint32) (uint64, syscall.Errno) {
	n, err := unix.Seek(int(w.file.Fd()), int64(off), int(whence))
	return uint64(n), errnos.Plain(err)
}

// Release implements fusefs.FileReleaser.
func (w *written) Release(context.Context) syscall.Errno {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.writer != nil {
		w.mu.writer.Close()
	}
	w.file.Close()
	w.done()
	return 0
}

package supply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spin is how long a wait asks again and again before it sleeps: long enough
// for a client that is on its way to its next call.
const spin = 50 * time.Microsecond

// A fileID tells files apart whatever their names.
type fileID struct{ device, inode uint64 }

func idOf(st *unix.Stat_t) fileID { return fileID{uint64(st.Dev), st.Ino} }

// A pipe is a FIFO by name.
type pipe struct {
	path    string
	id      fileID
	created bool
}

// makePipe finds a FIFO, or makes one that only its owner may use.
func makePipe(path string) (pipe, error) {
	p := pipe{path: path}
	switch err := unix.Mkfifo(path, 0o600); {
	case err == nil:
		p.created = true
	case !errors.Is(err, unix.EEXIST):
		return pipe{}, fmt.Errorf("make pipe %s: %w", path, err)
	}
	id, err := findPipe(path)
	p.id = id
	return p, err
}

func findPipe(path string) (fileID, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return fileID{}, &fs.PathError{Op: "stat pipe", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return fileID{}, fmt.Errorf("pipe %s: exists and is not a named pipe: remove it, or name another", path)
	}
	return idOf(&st), nil
}

func (p pipe) remove() {
	if id, err := findPipe(p.path); p.created && err == nil && id == p.id {
		os.Remove(p.path)
	}
}

// An end is one open end of a FIFO. It is no os.File until it must sleep: a
// round trip that never does is spared the poller's system calls.
type end struct {
	fd   int
	id   fileID
	file *os.File
}

// open opens an end at once: for writing it is ENXIO while no process reads.
func (p pipe) open(flag int) (*end, error) {
	fd, err := openFile(p.path, flag|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		unix.Close(fd)
		return nil, fmt.Errorf("%s is no longer a named pipe", p.path)
	}
	return &end{fd: fd, id: idOf(&st)}, nil
}

func (e *end) close() {
	if e.file != nil {
		e.file.Close()
		return
	}
	unix.Close(e.fd)
}

// unread counts the bytes that lie in the FIFO.
func (e *end) unread() int {
	n, err := unix.IoctlGetInt(e.fd, unix.TIOCINQ)
	if err != nil {
		panic("supply: count bytes of a pipe: " + err.Error())
	}
	return n
}

// abandoned, of a writing end: no process holds a reading end.
func (e *end) abandoned() bool {
	fds := []unix.PollFd{{Fd: int32(e.fd)}}
	_, err := unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&unix.POLLERR != 0
}

// await asks ready until it is true, first in a short spin and then whenever
// the kernel reports a change of the end. Its errors are
// os.ErrDeadlineExceeded and the context's.
func (e *end) await(ctx context.Context, deadline time.Time, ready func() bool) error {
	for start := time.Now(); ; yield() {
		if ready() {
			return nil
		}
		if time.Since(start) > spin {
			return e.park(ctx, deadline, ready)
		}
	}
}

func (e *end) park(ctx context.Context, deadline time.Time, ready func() bool) error {
	if e.file == nil {
		e.file = os.NewFile(uintptr(e.fd), "pipe")
	}
	if err := e.file.SetDeadline(deadline); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { e.file.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, err := e.file.SyscallConn()
	if err != nil {
		return err
	}
	// A dead peer is reported to both sides' waiters, and as an error to a
	// waiter for reading: a writing end must wait as a writer.
	wait := conn.Read
	if flags, err := unix.FcntlInt(uintptr(e.fd), unix.F_GETFL, 0); err == nil && flags&unix.O_ACCMODE == unix.O_WRONLY {
		wait = conn.Write
	}
	err = wait(func(uintptr) bool { return ready() })
	switch {
	case err == nil || ready(): // not every change is reported, as that the last byte was read
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// yield lets others run, other pairs here and the client, which may have been
// put aside on this very processor when it woke us.
func yield() {
	runtime.Gosched()
	unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}

// pause sleeps. The runtime rounds short sleeps of an idle process up to a
// millisecond, so those are left to the kernel.
func pause(d time.Duration) {
	if d >= time.Millisecond {
		time.Sleep(d)
		return
	}
	ts := unix.NsecToTimespec(int64(d))
	unix.Nanosleep(&ts, nil)
}

// openFile opens what stands at the path itself, never what a link there
// leads to.
func openFile(path string, flag int) (int, error) {
	for {
		fd, err := unix.Open(path, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

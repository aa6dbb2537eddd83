package shortcircuit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// disks are the disks that blocks are on. A disk that has died may not answer a read for
// ever, and a thread that waits for it cannot be woken. So readers take what is in memory, and
// have goroutines wait for the rest, which write into no reader's memory. Nor does a reader
// close a file: the last close of a deleted one frees its room on the disk. One goroutine for
// each disk does that. The lock guards each wait too, and is never held while a disk is
// asked for anything.
type disks struct {
	patience time.Duration
	open     atomic.Int64 // blocks whose files are open

	mu struct {
		sync.Mutex
		silent map[uint64]int          // reads that were given up and are not answered yet, by device
		left   map[uint64][][]*os.File // blocks whose files are to be closed, by device, if something is closed there
		gone   int                     // how many these are, with those that are being closed
		closed chan struct{}           // of the last of them; nil if there are none
	}
}

func newDisks(patience time.Duration) *disks {
	d := &disks{patience: patience}
	d.mu.silent, d.mu.left = make(map[uint64]int), make(map[uint64][][]*os.File)
	return d
}

// fruitless is how often a read waits for bytes that are then not in memory: it is
// short of that. After that it takes them as they come.
const fruitless = 4

// read fills p with the file's bytes from off on.
func (d *disks) read(f *os.File, device uint64, p []byte, off int64) error {
	for waits := 0; len(p) > 0; {
		n, err := inMemory(f, p, off)
		switch {
		case n > 0:
			waits = 0
		case err == nil:
			return io.EOF
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EAGAIN) && waits == fruitless:
			n, err = d.take(f, device, p, off)
		case errors.Is(err, unix.EAGAIN):
			waits++
			at, rest := off, int64(len(p))
			err = d.await(device, func() error { return touch(f, at, rest) })
		}
		if n == 0 && err != nil {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// A buffer has room for bytes that are taken as they come: where memory is short, or the
// filesystem does not tell what is in it.
type buffer [256 << 10]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// take reads the first bytes of p, wherever they are. They go through a buffer, which is
// the goroutine's that waits for the disk until that has answered: p may be another's then.
func (d *disks) take(f *os.File, device uint64, p []byte, off int64) (n int, err error) {
	b := buffers.Get().(*buffer)
	want := b[:min(len(p), len(b))]
	err = d.await(device, func() error {
		_, err := f.ReadAt(want, off)
		return err
	})
	if err != nil {
		return 0, err
	}
	defer buffers.Put(b)
	return copy(p, want), nil
}

// inMemory reads as much as is in the page cache.
func inMemory(f *os.File, p []byte, off int64) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var got error
	err = raw.Control(func(fd uintptr) {
		for n, got = unix.Preadv2(int(fd), [][]byte{p}, off, unix.RWF_NOWAIT); got == unix.EINTR; {
			n, got = unix.Preadv2(int(fd), [][]byte{p}, off, unix.RWF_NOWAIT)
		}
	})
	return max(n, 0), errors.Join(err, os.NewSyscallError("preadv2", got))
}

// expect has the disk begin to read n bytes from off on. No reader waits for it: a disk that
// is silent may keep even that.
func (d *disks) expect(f *os.File, device uint64, off, n int64) {
	if d.isSilent(device) {
		return
	}
	go func() { _ = willNeed(f, off, n) }()
}

func (d *disks) isSilent(device uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.silent[device] > 0
}

func willNeed(f *os.File, off, n int64) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { _ = unix.Fadvise(int(fd), off, n, unix.FADV_WILLNEED) })
}

// await waits for a question to a disk, which touches nothing that is the reader's. A disk
// that is silent is not asked more: no more goroutines wait for it than did when it fell
// silent.
func (d *disks) await(device uint64, ask func() error) error {
	if d.isSilent(device) {
		return errSilent
	}
	w := wait{disks: d, device: device, done: make(chan error, 1)}
	go w.run(ask)
	timer := time.NewTimer(d.patience)
	defer timer.Stop()
	select {
	case err := <-w.done:
		return err
	case <-timer.C:
		return w.giveUp()
	}
}

var errSilent = fmt.Errorf("its disk does not answer: %w", syscall.ETIMEDOUT)

// A wait is for a disk. The lock of disks guards its fields.
type wait struct {
	disks  *disks
	device uint64
	done   chan error
	ended  bool
	given  bool // up
}

func (w *wait) run(ask func() error) {
	err := ask()
	w.disks.mu.Lock()
	defer w.disks.mu.Unlock()
	w.ended = true
	w.done <- err
	if !w.given {
		return
	}
	if w.disks.mu.silent[w.device]--; w.disks.mu.silent[w.device] == 0 {
		delete(w.disks.mu.silent, w.device)
	}
}

// giveUp leaves the disk to the goroutine, unless it has ended just now.
func (w *wait) giveUp() error {
	w.disks.mu.Lock()
	defer w.disks.mu.Unlock()
	if w.ended {
		return <-w.done
	}
	w.given = true
	w.disks.mu.silent[w.device]++
	return errSilent
}

// touch has the kernel read n bytes from off on, all at once, and waits for the first and the
// last.
func touch(f *os.File, off, n int64) error {
	if err := willNeed(f, off, n); err != nil {
		return err
	}
	var one [1]byte
	for _, at := range []int64{off + n - 1, off} {
		if _, err := f.ReadAt(one[:], at); err != nil {
			return err
		}
	}
	return nil
}

// close has a block's files closed. It does not wait for that.
func (d *disks) close(device uint64, files []*os.File) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.gone++; d.mu.gone == 1 {
		d.mu.closed = make(chan struct{})
	}
	left, closing := d.mu.left[device]
	d.mu.left[device] = append(left, files)
	if !closing {
		go d.closeAll(device)
	}
}

// reject has descriptors closed, whatever they are, that are not those of a block.
func (d *disks) reject(fds []int) {
	for _, fd := range fds {
		f := os.NewFile(uintptr(fd), "no block")
		st, _ := look(f)
		d.open.Add(1)
		d.close(identityOf(&st).dev, []*os.File{f})
	}
}

// closeAll closes the files that wait for it on a disk.
func (d *disks) closeAll(device uint64) {
	for files, ok := d.next(device); ok; files, ok = d.next(device) {
		for _, f := range files {
			f.Close()
		}
		d.open.Add(-1)
		d.hasClosed()
	}
}

// next returns the next files to be closed on a disk, if there are more.
func (d *disks) next(device uint64) (files []*os.File, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := d.mu.left[device]
	if len(left) == 0 {
		delete(d.mu.left, device)
		return files, false
	}
	d.mu.left[device] = left[1:]
	return left[0], true
}

func (d *disks) hasClosed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.gone--; d.mu.gone == 0 {
		close(d.mu.closed)
		d.mu.closed = nil
	}
}

// closing is the number of blocks with files that are not closed yet though they are to be, and
// what is closed when there are none.
func (d *disks) closing() (blocks int, none <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.gone, d.mu.closed
}

// awaitClosed waits until all is closed that is to be, if the disks answer.
func (d *disks) awaitClosed() {
	timer := time.NewTimer(d.patience)
	defer timer.Stop()
	for n, none := d.closing(); n > 0; n, none = d.closing() {
		select {
		case <-none:
		case <-timer.C:
			return
		}
	}
}

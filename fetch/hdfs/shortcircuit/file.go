package shortcircuit

import (
	"container/list"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A File is a block's two open files. Reading does not change it, so many readers
// may share it, each with a use of its own from Open to Release.
//
// Its bytes are those of the block as long as both files are as they were when
// the datanode passed them: HDFS never writes into a finished block, and to
// append to one, move or delete it, it renames or unlinks its files, which
// changes their ctime.
type File struct {
	client *Client
	key    key
	home   home

	data, sums *os.File
	was        [2]identity // of data and sums
	size       int64
	per        int64 // bytes that have a checksum together
	table      *crc32.Table

	// The client's lock guards these.
	uses      int
	forgotten bool // closed after its last use
	since     time.Time
	idle      *list.Element // in the list of idle files, if it has no use
}

// The file of checksums begins with its version, their kind, and for how many
// bytes there is one.
const headerSize = 2 + 1 + 4

const (
	sumSize        = 4
	minPer, maxPer = 64, 1 << 20 // as over TCP
)

// ErrChanged is the error of a block that was changed or taken away.
var ErrChanged = errors.New("the datanode has changed the block")

// newFile checks the files that a datanode has passed. On an error it closes them.
func newFile(files [2]*os.File, b Block) (*File, error) {
	f := &File{data: files[0], sums: files[1]}
	if err := errors.Join(f.named(b.ID), f.examine(b.Size)); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// named reports an error if the checksums are another block's. Bytes of another
// block do not match the checksums of this one, but would match their own.
func (f *File) named(id uint64) error {
	path, err := nameOf(f.sums)
	if err != nil {
		return err
	}
	if name := filepath.Base(path); !strings.HasPrefix(name, fmt.Sprintf("blk_%d_", int64(id))) {
		return fmt.Errorf("its checksums %w: they are those of %s", meta.ErrCorrupt, name)
	}
	return nil
}

// nameOf is the path that the kernel knows an open file by.
func nameOf(f *os.File) (path string, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return "", err
	}
	var got error
	err = raw.Control(func(fd uintptr) { path, got = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)) })
	return path, errors.Join(err, got)
}

// examine returns an error if the files cannot belong to a block of that size.
func (f *File) examine(size int64) error {
	var sizes [2]int64
	for i, file := range []*os.File{f.data, f.sums} {
		st, err := stat(file)
		if err != nil {
			return err
		}
		if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
			return fmt.Errorf("what the datanode passes %w: it is no file", meta.ErrCorrupt)
		}
		f.was[i], sizes[i] = identityOf(&st), st.Size
	}
	if f.size = sizes[0]; f.size < size {
		return fmt.Errorf("its file %w: it has %d bytes of %d", meta.ErrCorrupt, f.size, size)
	}
	if err := f.readHeader(); err != nil {
		return err
	}
	if want := headerSize + (f.size+f.per-1)/f.per*sumSize; sizes[1] < want {
		return fmt.Errorf("its checksums %w: they have %d bytes of %d", meta.ErrCorrupt, sizes[1], want)
	}
	return nil
}

func (f *File) readHeader() error {
	var head [headerSize]byte
	if _, err := f.sums.ReadAt(head[:], 0); err != nil {
		return fmt.Errorf("its checksums: %w", err)
	}
	if v := binary.BigEndian.Uint16(head[:]); v != format {
		return fmt.Errorf("its checksums have format %d: %w", v, meta.ErrCorrupt)
	}
	switch kind := head[2]; kind {
	case 1:
		f.table = crc32.IEEETable
	case 2:
		f.table = castagnoli
	default:
		return fmt.Errorf("there are no checksums of a kind that can be checked, but kind %d: %w", kind, meta.ErrCorrupt)
	}
	if f.per = int64(binary.BigEndian.Uint32(head[3:])); f.per < minPer || f.per > maxPer {
		return fmt.Errorf("there is a checksum for every %d bytes, and %d to %d are read: %w", f.per, minPer, maxPer, meta.ErrCorrupt)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// unchanged returns an error if a file has changed since the datanode passed it.
func (f *File) unchanged() error {
	for i, file := range []*os.File{f.data, f.sums} {
		st, err := stat(file)
		if err != nil {
			return err
		}
		if identityOf(&st) != f.was[i] {
			return ErrChanged
		}
	}
	return nil
}

func stat(f *os.File) (st syscall.Stat_t, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return st, err
	}
	var got error
	err = raw.Control(func(fd uintptr) { got = syscall.Fstat(int(fd), &st) })
	return st, errors.Join(err, os.NewSyscallError("fstat", got))
}

// Release ends a use of the file.
func (f *File) Release() {
	f.client.mu.Lock()
	defer f.client.mu.Unlock()
	f.client.release(f)
}

// Forget keeps the file from further readers.
func (f *File) Forget() { f.client.forget(f) }

func (f *File) close() {
	f.data.Close()
	f.sums.Close()
}

// Large reads are done in pieces that a processor's caches still have when they
// are checked, with the checksums of many pieces at a time. A piece of 128 KiB
// costs a tenth more processor time, one of 4 MiB no less.
const (
	piece  = 1 << 20
	window = piece / minPer * sumSize // bytes of checksums: of a piece at least, of 8 MiB at HDFS's 512 bytes each
)

// A scratch holds the buffers that one ReadAt needs besides p.
type scratch struct {
	sums     [window]byte
	from, to int64  // the chunks that sums has checksums of
	edge     []byte // a chunk of which p wants a part
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// ReadAt fills p with bytes that match their checksums, or returns an error, one
// wrapping meta.ErrCorrupt if they do not. After an error the contents of p are
// undefined.
func (f *File) ReadAt(p []byte, off int64) error {
	if off < 0 || int64(len(p)) > f.size-off {
		return fmt.Errorf("bytes %d+%d of a block of %d: %w", off, len(p), f.size, meta.ErrInvalid)
	}
	if err := f.unchanged(); err != nil {
		return err
	}
	n := f.share(len(p))
	if n >= len(p) {
		return f.read(p, off)
	}
	var work sync.WaitGroup
	errs := make([]error, (len(p)+n-1)/n)
	for i := range errs {
		at := i * n
		work.Go(func() { errs[i] = f.read(p[at:min(at+n, len(p))], off+int64(at)) })
	}
	work.Wait()
	return errors.Join(errs...)
}

// share is how much of a large read a processor does: copying and checking are
// its work, where over TCP the datanode does some. More than four would find
// the memory busy.
func (f *File) share(n int) int {
	const least = 2 << 20
	share := max(least, (n+workers-1)/workers)
	return share + int(f.per) - share%int(f.per) // a chunk is read once, if p begins with one
}

var workers = min(4, runtime.NumCPU())

func (f *File) read(p []byte, off int64) error {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.from, s.to = 0, 0
	for len(p) > 0 {
		n, err := f.step(s, p, off)
		if err != nil {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// step reads and checks the first bytes of p.
func (f *File) step(s *scratch, p []byte, off int64) (n int, err error) {
	if head := off % f.per; head != 0 || int64(len(p)) < min(f.per, f.size-off) {
		return f.part(s, p, off-head, head)
	}
	n = min(len(p), int(max(f.per, piece-piece%f.per)))
	if off+int64(n) != f.size {
		n -= n % int(f.per)
	}
	return n, f.whole(s, p[:n], off, len(p))
}

// part reads and checks a whole chunk, and copies its bytes from head on into p.
func (f *File) part(s *scratch, p []byte, start, head int64) (int, error) {
	n := int(min(f.per, f.size-start))
	if cap(s.edge) < n {
		s.edge = make([]byte, n)
	}
	s.edge = s.edge[:n]
	if err := f.whole(s, s.edge, start, int(head)+len(p)); err != nil {
		return 0, err
	}
	return copy(p, s.edge[head:]), nil
}

// whole reads chunks into p and checks them. Some more may follow: from off on,
// total bytes are wanted.
func (f *File) whole(s *scratch, p []byte, off int64, total int) error {
	sums, err := f.window(s, off, int64(len(p)), int64(total))
	if err != nil {
		return err
	}
	if _, err := f.data.ReadAt(p, off); err != nil {
		if err == io.EOF {
			err = fmt.Errorf("its file ends: %w", ErrChanged)
		}
		return err
	}
	for ; len(p) > 0; sums = sums[sumSize:] {
		n := min(len(p), int(f.per))
		if crc32.Checksum(p[:n], f.table) != binary.BigEndian.Uint32(sums) {
			return fmt.Errorf("its bytes at %d: the checksum does not match: %w", off, meta.ErrCorrupt)
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// window returns the checksums of n bytes from off on. It reads those of the bytes
// wanted next along with them, as far as the buffer has room.
func (f *File) window(s *scratch, off, n, total int64) ([]byte, error) {
	first, last := off/f.per, (off+n+f.per-1)/f.per
	if first < s.from || last > s.to {
		end := min((off+total+f.per-1)/f.per, first+window/sumSize, (f.size+f.per-1)/f.per)
		if _, err := f.sums.ReadAt(s.sums[:(end-first)*sumSize], headerSize+first*sumSize); err != nil {
			return nil, fmt.Errorf("its checksums: %w", err)
		}
		s.from, s.to = first, end
		f.expect(end*f.per, off+total)
	}
	return s.sums[(first-s.from)*sumSize : (last-s.from)*sumSize], nil
}

// expect has the disk read the bytes that will be wanted after this window, at most
// as many as the window has.
func (f *File) expect(from, to int64) {
	n := min(to-from, window/sumSize*f.per)
	if n <= 0 {
		return
	}
	if raw, err := f.data.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Fadvise(int(fd), from, n, unix.FADV_WILLNEED) })
	}
}

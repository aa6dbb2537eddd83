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
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"rankfs/meta"
)

// A File is a block's two open files. Many readers may share it, each with a use of its
// own from Open to Release.
//
// Its bytes are those of the block as long as both files are as they were when
// the datanode passed them: HDFS never writes into a finished block, and to
// append to one, move or delete it, it renames or unlinks its files, which
// changes their ctime.
type File struct {
	holder holder
	key    key
	origin origin
	disks  *disks

	data, sums *os.File
	was        [2]identity // of data and sums
	size       int64
	per        int64 // bytes that have a checksum together
	table      *crc32.Table
	asked      time.Time   // for its files, before it was looked whether the block is refused
	sound      atomic.Bool // bytes of it have matched their checksums

	// The client's lock guards these.
	uses      int
	forgotten bool          // closed after its last use
	idle      *list.Element // in the list of idle files, if it has no use
}

// A holder is the client that keeps a file, as the file knows it. Its methods may be called
// concurrently.
type holder interface {
	// accept ends that the block is refused, now that bytes of it have matched their checksums.
	accept(*File)
	end(*File)
	fail(f *File, cause error)
}

// Release ends a use of the file.
func (f *File) Release() { f.holder.end(f) }

// Fail keeps the file, which could not be read, from further readers. They get the
// block over TCP for a while, unless it was changed, or the fault is of their memory.
func (f *File) Fail(cause error) { f.holder.fail(f, cause) }

// The file of checksums begins with its version, their kind, and for how many
// bytes there is one.
const headerSize = 2 + 1 + 4

const (
	sumSize        = 4
	minPer, maxPer = 64, 1 << 20 // as over TCP
)

const format = 1 // of a block's files, the highest that is understood

// ErrChanged is the error of a block that was changed or taken away.
var ErrChanged = errors.New("the datanode has changed the block")

// newFile checks the files that a datanode has passed. On an error it closes them.
func newFile(files [2]*os.File, b Block, d *disks) (*File, error) {
	d.open.Add(1)
	f := &File{data: files[0], sums: files[1], disks: d}
	if err := errors.Join(f.named(b), f.examine(b.Size)); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// named reports an error if the checksums are another block's, or of before the block
// was appended to. Such bytes do not match the checksums of this one, but would match
// their own.
func (f *File) named(b Block) error {
	path, err := nameOf(f.sums)
	if err != nil {
		return err
	}
	if name := filepath.Base(path); !strings.HasPrefix(name, fmt.Sprintf("blk_%d_%d.meta", int64(b.ID), b.Stamp)) {
		return fmt.Errorf("its file of checksums %w: it is that of %s", meta.ErrCorrupt, name)
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
		st, err := look(file)
		if err != nil {
			return err
		}
		if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
			return fmt.Errorf("what the datanode passes %w: it is no file", meta.ErrCorrupt)
		}
		f.was[i], sizes[i] = identityOf(&st), int64(st.Size)
	}
	if f.size = sizes[0]; f.size < size {
		return fmt.Errorf("its file %w: it has %d bytes of %d", meta.ErrCorrupt, f.size, size)
	}
	if err := f.readHeader(); err != nil {
		return err
	}
	if want := headerSize + (f.size+f.per-1)/f.per*sumSize; sizes[1] < want {
		return fmt.Errorf("its file of checksums %w: it has %d bytes of %d", meta.ErrCorrupt, sizes[1], want)
	}
	return nil
}

func (f *File) readHeader() error {
	var head [headerSize]byte
	if err := f.disks.read(f.sums, f.was[1].dev, head[:], 0); err != nil {
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
		st, err := look(file)
		if err != nil {
			return err
		}
		if identityOf(&st) != f.was[i] {
			return ErrChanged
		}
	}
	return nil
}

func (f *File) close() { f.disks.close(f.was[0].dev, []*os.File{f.data, f.sums}) }

// Large reads are done in pieces that a processor's caches still have when they
// are checked, with the checksums of many pieces at a time. A piece of 128 KiB
// costs a tenth more processor time, one of 4 MiB no less.
const (
	readBytes = 1 << 20
	window    = readBytes / minPer * sumSize // bytes of checksums: of one read at least, of 8 MiB at HDFS's 512 bytes each
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
	if err := f.readAll(p, off); err != nil {
		return err
	}
	if !f.sound.Swap(true) {
		f.holder.accept(f)
	}
	return nil
}

// readAll divides a large read among processors: copying and checking are their work,
// where over TCP the datanode does some. They take shares in the order of the file, so
// that the kernel sees one reader that goes forward, and has the disk read ahead of it. A
// memory fault in p goes on in the caller's goroutine, which knows what it means.
func (f *File) readAll(p []byte, off int64) error {
	n := f.share()
	if len(p) <= n {
		return f.read(p, off)
	}
	f.expectSums(off, int64(len(p)))
	var next atomic.Int64
	var work sync.WaitGroup
	var panicked atomic.Value
	errs := make([]error, workers)
	for i := range errs {
		work.Go(func() {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer func() {
				if v := recover(); v != nil {
					panicked.CompareAndSwap(nil, &v)
				}
			}()
			for at := n * int(next.Add(1)-1); at < len(p) && errs[i] == nil; at = n * int(next.Add(1)-1) {
				if errs[i] = f.read(p[at:min(at+n, len(p))], off+int64(at)); errs[i] != nil {
					next.Add(int64(len(p))) // no share is left
				}
			}
		})
	}
	work.Wait()
	if v, ok := panicked.Load().(*any); ok {
		panic(*v)
	}
	return errors.Join(errs...)
}

// More workers than four would find the memory busy.
var workers = min(4, runtime.NumCPU())

// share is how much of a large read a worker takes at a time: whole chunks, which are read
// once if the read begins with one.
func (f *File) share() int {
	const minRead = 2 << 20
	return (minRead + int(f.per) - 1) / int(f.per) * int(f.per)
}

// expectSums has the disk begin to read the checksums of n bytes from off on, all at
// once: read as they are needed they would queue behind the bytes that are read ahead.
func (f *File) expectSums(off, n int64) {
	first, last := off/f.per, (off+n+f.per-1)/f.per
	f.disks.expect(f.sums, f.was[1].dev, headerSize+first*sumSize, (last-first)*sumSize)
}

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
	n = min(len(p), int(max(f.per, readBytes-readBytes%f.per)))
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
	if err := f.disks.read(f.data, f.was[0].dev, p, off); err != nil {
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
		if err := f.disks.read(f.sums, f.was[1].dev, s.sums[:(end-first)*sumSize], headerSize+first*sumSize); err != nil {
			return nil, fmt.Errorf("its checksums: %w", err)
		}
		s.from, s.to = first, end
	}
	return s.sums[(first-s.from)*sumSize : (last-s.from)*sumSize], nil
}

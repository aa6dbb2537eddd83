package pieces

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/fault"
)

// A Table says of each part of a map where it ends in the map's file, and what its
// piece, the bytes up to there, hashes to. The sum of a table is what the cluster agrees
// on: it stands for all bytes and offsets, and each piece can be checked without the
// others.
type Table []byte

// RowBytes are the bytes of a part in a table: its end and the xxh64 of its piece.
const RowBytes = 16

// Parts is how many it has rows of.
func (t Table) Parts() uint64 { return uint64(len(t) / RowBytes) }

// End is where the piece of a part ends.
func (t Table) End(part uint64) int64 { return int64(binary.LittleEndian.Uint64(t[RowBytes*part:])) }

// SumOf is what the piece of a part hashes to.
func (t Table) SumOf(part uint64) uint64 { return binary.LittleEndian.Uint64(t[RowBytes*part+8:]) }

// Sum is what the table hashes to.
func (t Table) Sum() uint64 { return xxhash.Sum64(t) }

// Size is the size of the map.
func (t Table) Size() int64 { return t.End(t.Parts() - 1) }

// Is reports whether the table is the one of a map of that size that was agreed on.
func (t Table) Is(sum uint64, size int64) bool {
	if len(t) == 0 || len(t)%RowBytes != 0 || t.Sum() != sum {
		return false
	}
	at := int64(0)
	for i := range t.Parts() {
		if t.End(i) < at {
			return false
		}
		at = t.End(i)
	}
	return at == size
}

// AppendRow appends a row to a table.
func AppendRow(t Table, end int64, sum uint64) Table {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(t, uint64(end)), sum)
}

// mappedAtOnce is how much of a file is mapped at a time.
const mappedAtOnce = 16 << 20

// A Summing makes the table of a map that is divided so, of its files one after the other.
type Summing struct {
	is     Table
	pieces Reader
}

// NewSumming begins a table of the parts that have these offsets.
func NewSumming(o Offsets) *Summing {
	parts := uint64(len(o)/8 - 1)
	s := &Summing{is: make(Table, 0, RowBytes*parts)}
	s.pieces = Reader{
		n: parts, end: func(i uint64) int64 { return o.at(i + 1) },
		summed: func(i, sum uint64) error {
			s.is = AppendRow(s.is, o.at(i+1), sum)
			return nil
		},
	}
	return s
}

// Know adds pieces whose sums are known.
func (s *Summing) Know(sums []uint64) {
	p := &s.pieces
	for _, sum := range sums {
		s.is = AppendRow(s.is, p.end(p.i), sum)
		p.at = p.end(p.i)
		p.i++
	}
}

// Add adds a file in memory. It is summed where it is: to copy it first took as long as the
// sum. The file must not become shorter meanwhile.
func (s *Summing) Add(file *os.File, size int64) error {
	fd := int(file.Fd())
	for at := int64(0); at < size; at += mappedAtOnce {
		b, err := unix.Mmap(fd, at, int(min(size-at, mappedAtOnce)), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
		if err != nil {
			return fmt.Errorf("map what is to be summed: %w", err)
		}
		err = fault.Guard(func() error { return s.pieces.Add(b) })
		if err = errors.Join(err, unix.Munmap(b)); err != nil {
			return err
		}
	}
	return nil
}

// End is the table, when all was added.
func (s *Summing) End() (Table, error) {
	err := s.pieces.Add(nil) // there may be empty ones alone
	return s.is, err
}

// Check returns a reader of the pieces of rows, the first of which begins at so many
// bytes. It fails at the end of one that hashes to something else.
func (t Table) Check(r io.Reader, begin int64) *Reader {
	return &Reader{
		from: r, at: begin, n: t.Parts(), end: t.End,
		summed: func(i, sum uint64) error {
			if sum != t.SumOf(i) {
				return fmt.Errorf("piece of part %d %w: it has other bytes than were committed", i, meta.ErrCorrupt)
			}
			return nil
		},
	}
}

// A Reader reads pieces that stand one after the other, and sums each.
type Reader struct {
	from   io.Reader
	n      uint64
	end    func(i uint64) int64
	summed func(i, sum uint64) error

	i      uint64 // the piece that is being read
	at     int64  // of all bytes
	digest *xxhash.Digest
}

// Read implements io.Reader. What it returns of a piece is right once the next piece,
// or the end, was reached without an error.
func (p *Reader) Read(b []byte) (n int, err error) {
	n, err = p.from.Read(b)
	if late := p.Add(b[:n]); late != nil {
		return 0, late
	}
	if err == io.EOF {
		if late := p.Ended(); late != nil {
			return 0, late
		}
	}
	return n, err
}

// Ended says that nothing follows.
func (p *Reader) Ended() error {
	if p.i < p.n {
		return fmt.Errorf("list of pieces of a map %w: it ends at byte %d of %d", meta.ErrCorrupt, p.at, p.end(p.n-1))
	}
	return nil
}

// Add takes the next bytes of a map. At the end of each piece its sum is handed on.
func (p *Reader) Add(b []byte) error {
	if p.digest == nil {
		p.digest = xxhash.New()
	}
	for p.i < p.n {
		k := min(p.end(p.i)-p.at, int64(len(b)))
		if k < 0 {
			return fmt.Errorf("table of a map %w: part %d ends before it begins", meta.ErrCorrupt, p.i)
		}
		p.digest.Write(b[:k])
		p.at += k
		if b = b[k:]; p.at < p.end(p.i) {
			return nil
		}
		if err := p.summed(p.i, p.digest.Sum64()); err != nil {
			return err
		}
		p.digest.Reset()
		p.i++
	}
	if len(b) > 0 {
		return fmt.Errorf("list of pieces of a map %w: it goes on after byte %d", meta.ErrCorrupt, p.at)
	}
	return nil
}

// Drain reads to the end.
func Drain(r io.Reader) error {
	_, err := Copy(io.Discard, r)
	return err
}

// BufferBytes are read at a time. What is read to be summed is summed while it is in the processor's cache: by 1 MiB at a time
// a file in memory took 215 us for each MiB, by 256 KiB 166.
const BufferBytes = 256 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, BufferBytes); return &b }}

// Copy copies by memory that is used again.
func Copy(w io.Writer, r io.Reader) (int64, error) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	return io.CopyBuffer(onlyWriter{w}, onlyReader{r}, *buf)
}

// An onlyWriter, and an onlyReader, have nothing that io.CopyBuffer would use instead of the
// buffer.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

// Offsets are where a map's parts begin, and where the last ends.
type Offsets []byte

func (o Offsets) at(i uint64) int64 { return int64(binary.LittleEndian.Uint64(o[8*i:])) }

// Whole are the offsets of one part.
func Whole(size int64) Offsets {
	return binary.LittleEndian.AppendUint64(make([]byte, 8, 16), uint64(size))
}

// errNotDivided is for rename(2) of an attempt whose offsets cannot be, or whose
// records cannot: of EINVAL mv(1) says that a directory is moved into itself.
const errNotDivided = unix.EBADMSG

// ReadOffsets reads and checks the offsets of an attempt of that many bytes. A stage of one
// part needs none, nor does one whose records the pool divides: it has nil.
func ReadOffsets(path string, spec meta.Stage, size int64) (Offsets, error) {
	parts := spec.Parts
	b, n, err := readUpTo(path, 8*int64(parts+1))
	switch none := errors.Is(err, os.ErrNotExist); {
	case none && spec.Records.Kind != meta.NoRecords:
		return nil, nil
	case none && parts == 1:
		return Whole(size), nil
	case none:
		return nil, meta.Worded(errNotDivided, "it has no .idx file, which says where its %d parts begin: write %d numbers of 8 bytes, little-endian, the last of them its size; or have the pool divide it, with record=line and key= in the spec", parts, parts+1)
	case err != nil:
		return nil, err
	case spec.Records.Ranges:
		return nil, meta.Worded(errNotDivided, "it has an .idx file, and with by=range the pool divides it: leave that out")
	}
	o := Offsets(b)
	if uint64(n) != 8*(parts+1) || n != int64(len(b)) {
		return nil, meta.Worded(errNotDivided, "its .idx file has %d bytes; %d parts take %d", n, parts, 8*(parts+1))
	}
	for i := range parts {
		if from, to := uint64(o.at(i)), uint64(o.at(i+1)); from > to {
			return nil, meta.Worded(errNotDivided, "its .idx file goes back at part %d, from %d to %d", i, from, to)
		}
	}
	if o.at(0) != 0 || o.at(parts) != size {
		return nil, meta.Worded(errNotDivided, "its .idx file goes from %d to %d, and the file has %d bytes", uint64(o.at(0)), uint64(o.at(parts)), size)
	}
	return o, nil
}

// readUpTo reads at most so many bytes of a file, and says how many it has: its writer may
// have made it as large as no memory is.
func readUpTo(path string, bytes int64) (b []byte, has int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	b, err = io.ReadAll(io.LimitReader(file, bytes))
	return b, info.Size(), err
}

// Length is the length of the pieces of the rows, the first of which begins there.
func (t Table) Length(begin int64) int64 { return t.End(t.Parts()-1) - begin }

// Match reports whether bytes are the pieces of the rows.
func (t Table) Match(b []byte, begin int64) bool {
	at := begin
	for i := range t.Parts() {
		if xxhash.Sum64(b[at-begin:t.End(i)-begin]) != t.SumOf(i) {
			return false
		}
		at = t.End(i)
	}
	return true
}

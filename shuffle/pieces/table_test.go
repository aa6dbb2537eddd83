package pieces

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"rankfs/meta"
)

// inMemory is a file of these bytes.
func inMemory(t *testing.T, b []byte) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("map", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "map")
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	return f
}

// tableOf is that of one file.
func tableOf(file *os.File, o Offsets) (Table, error) {
	sum := NewSumming(o)
	if err := sum.Add(file, o.at(uint64(len(o)/8-1))); err != nil {
		return nil, err
	}
	return sum.End()
}

// Pieces may be longer than what is mapped at a time, and begin and end anywhere. A file that
// is shorter than was said has no table.
func TestTableOfALongMap(t *testing.T) {
	b := bytes.Repeat([]byte("0123456789abcdefg"), 3*mappedAtOnce/17)
	o := Offsets(make([]byte, 8))
	for _, end := range []int{5, mappedAtOnce + 1, mappedAtOnce + 1, 2 * mappedAtOnce, len(b), len(b)} {
		o = binary.LittleEndian.AppendUint64(o, uint64(end))
	}
	all, err := tableOf(inMemory(t, b), o)
	if err != nil || all.Parts() != 6 || !all.Match(b, 0) {
		t.Fatalf("table of %d parts: %v", all.Parts(), err)
	}
	if _, err := tableOf(inMemory(t, b[:2*mappedAtOnce]), o); !errors.Is(err, unix.EFAULT) {
		t.Errorf("of a file that is too short: %v", err)
	}
}

// A table finds every byte that is other, missing or too many, and every change of its
// own, wherever pieces begin and however they are read.
func TestTable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		lengths := rapid.SliceOfN(rapid.IntRange(0, 40), 1, 9).Draw(r, "lengths")
		o, size := Offsets(make([]byte, 8)), 0
		for _, n := range lengths {
			size += n
			o = binary.LittleEndian.AppendUint64(o, uint64(size))
		}
		b := rapid.SliceOfN(rapid.Byte(), size, size).Draw(r, "bytes")
		all, err := tableOf(inMemory(t, b), o)
		if err != nil || all.Parts() != uint64(len(lengths)) || !all.Is(all.Sum(), int64(size)) {
			r.Fatalf("table of %v: %v", lengths, err)
		}
		good := func(rows Table, begin int64, b []byte) error {
			got, err := io.ReadAll(rows.Check(iotest.HalfReader(bytes.NewReader(b)), begin))
			if err == nil && !bytes.Equal(got, b) {
				r.Fatalf("read %x of %x", got, b)
			}
			return err
		}
		if err := good(all, 0, b); err != nil || !all.Match(b, 0) {
			r.Fatalf("bytes as they were: %v", err)
		}
		i := rapid.IntRange(0, len(lengths)-1).Draw(r, "part")
		begin := int64(0)
		if i > 0 {
			begin = all.End(uint64(i - 1))
		}
		row := all[RowBytes*i : RowBytes*(i+1)]
		piece := bytes.Clone(b[begin:row.End(0)])
		if err := good(row, begin, piece); err != nil || !row.Match(piece, begin) {
			r.Fatalf("piece %d: %v", i, err)
		}
		if err := good(row, begin, append(piece, 1)); !errors.Is(err, meta.ErrCorrupt) {
			r.Fatalf("a byte too many: %v", err)
		}
		if n := len(piece); n > 0 {
			if err := good(row, begin, piece[:n-1]); !errors.Is(err, meta.ErrCorrupt) {
				r.Fatalf("a byte too few: %v", err)
			}
			piece[rapid.IntRange(0, n-1).Draw(r, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
			if err := good(row, begin, piece); !errors.Is(err, meta.ErrCorrupt) || row.Match(piece, begin) {
				r.Fatalf("another bit: %v", err)
			}
		}
		other := bytes.Clone(all)
		other[rapid.IntRange(0, len(other)-1).Draw(r, "byte of table")] ^= 1
		if Table(other).Is(all.Sum(), int64(size)) || all.Is(all.Sum(), int64(size)+1) {
			r.Fatal("another table is taken for this one")
		}
	})
}

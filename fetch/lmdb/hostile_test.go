package lmdb_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"rankfs/fetch/lmdb"
	"rankfs/meta"
)

// walkBound is what a walk may allocate, whatever is in the file: 32 leaves
// and 32 branches of 32 KiB, and a little for errors.
const walkBound = 3 << 20

// walk goes through a file that may be anything.
func walk(t testing.TB, b []byte, db string) (int, error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, end, err := lmdb.Walk(bytes.NewReader(b), int64(len(b)), db)
	runtime.ReadMemStats(&after)
	if end > int64(len(b)) {
		t.Errorf("a record ends at %d of %d", end, len(b))
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > walkBound {
		t.Errorf("took %d bytes of memory", took)
	}
	for _, is := range []error{meta.ErrCorrupt, meta.ErrInvalid, meta.ErrNotExist} {
		if errors.Is(err, is) {
			return n, err
		}
	}
	if err != nil {
		t.Errorf("an error of no kind: %v", err)
	}
	return n, nil
}

// contents returns the data file of a shape.
func contents(t testing.TB, s shape) []byte {
	path := t.TempDir()
	s.made(t, path, s)
	b, err := os.ReadFile(filepath.Join(path, "data.mdb"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func shapeNamed(name string) shape {
	for _, s := range shapes() {
		if s.name == name {
			return s
		}
	}
	panic(name)
}

var (
	little  = binary.LittleEndian
	headAt  = func(b []byte) []byte { return newest(b)[16:] } // the newer meta page's content
	mainAt  = func(b []byte) []byte { return headAt(b)[72:] }
	rootAt  = func(b []byte) []byte { return pageAt(b, little.Uint64(mainAt(b)[40:])) }
	nodeAt  = func(p []byte, i int) []byte { return p[little.Uint16(p[16+2*i:]):] }
	pageAt  = func(b []byte, n uint64) []byte { return b[n*4096 : (n+1)*4096] }
	childOf = func(p []byte, i int) uint64 { return little.Uint64(nodeAt(p, i)) & (1<<48 - 1) }
)

func newest(b []byte) []byte {
	if little.Uint64(b[4096+144:]) > little.Uint64(b[144:]) {
		return b[4096:8192]
	}
	return b[:4096]
}

// leafAt is the first leaf below the root.
func leafAt(b []byte) []byte {
	p := rootAt(b)
	for p[10]&1 != 0 {
		p = pageAt(b, childOf(p, 0))
	}
	return p
}

func setBoth(b []byte, at int, v uint32) {
	little.PutUint32(b[at:], v)
	little.PutUint32(b[4096+at:], v)
}

func TestHostile(t *testing.T) {
	rows := []struct {
		name, of string
		damage   func(b []byte) []byte
		says     string
	}{
		{"page size 0", "mixed", func(b []byte) []byte { setBoth(b, 40, 0); return b }, "page size 0"},
		{"page size 3", "mixed", func(b []byte) []byte { setBoth(b, 40, 3); return b }, "page size 3"},
		{"page size 2^31", "mixed", func(b []byte) []byte { setBoth(b, 40, 1<<31); return b }, "page size 2147483648"},
		{"page size 2^15", "mixed", func(b []byte) []byte { setBoth(b, 40, 1<<15); return b }, "page 1"},
		{"magic", "mixed", func(b []byte) []byte { b[16]++; return b }, "page 0: not an LMDB file"},
		{"second magic", "mixed", func(b []byte) []byte { b[4096+16]++; return b }, "page 1: not an LMDB file"},
		{"version", "mixed", func(b []byte) []byte { b[20] = 2; return b }, "format version 2"},
		{"metas disagree", "mixed", func(b []byte) []byte { little.PutUint32(b[4096+40:], 8192); return b }, "page size 8192, but 4096"},
		{"last page 2^63", "mixed", func(b []byte) []byte { little.PutUint64(headAt(b)[120:], 1<<63); return b }, "last page"},
		{"last page too small", "mixed", func(b []byte) []byte { little.PutUint64(headAt(b)[120:], 2); return b }, "leads to page"},
		{"depth 0", "mixed", func(b []byte) []byte { little.PutUint16(mainAt(b)[6:], 0); return b }, "depth 0"},
		{"depth 65535", "mixed", func(b []byte) []byte { little.PutUint16(mainAt(b)[6:], 65535); return b }, "depth 65535"},
		{"depth too large", "deep", func(b []byte) []byte { mainAt(b)[6]++; return b }, "flags 0x2 where 0x1 is due"},
		{"depth too small", "deep", func(b []byte) []byte { mainAt(b)[6]--; return b }, "flags 0x1 where 0x2 is due"},
		{"root a meta page", "mixed", func(b []byte) []byte { little.PutUint64(mainAt(b)[40:], 1); return b }, "leads to page 1"},
		{"root out of range", "mixed", func(b []byte) []byte { little.PutUint64(mainAt(b)[40:], 1<<40); return b }, "leads to page"},
		{"root 2^64-2", "mixed", func(b []byte) []byte { little.PutUint64(mainAt(b)[40:], 1<<64-2); return b }, "leads to page"},
		{"no root", "mixed", func(b []byte) []byte { little.PutUint64(mainAt(b)[40:], 1<<64-1); return b }, "leads to page"},
		{"entries too few", "mixed", func(b []byte) []byte { mainAt(b)[32]--; return b }, "more than the 63"},
		{"entries too many", "mixed", func(b []byte) []byte { mainAt(b)[32]++; return b }, "64 records, 65"},
		{"branch to itself", "deep", selfReference, "where 0x2 is due"},
		{"branches to themselves, deep", "deep", func(b []byte) []byte {
			mainAt(b)[6] = 32
			return selfReference(b)
		}, "more pages than the file has"},
		{"one leaf many times", "deep", func(b []byte) []byte {
			p := rootAt(b)
			for p[10]&1 != 0 && pageAt(b, childOf(p, 0))[10]&1 != 0 {
				p = pageAt(b, childOf(p, 0))
			}
			for i := range (int(little.Uint16(p[12:])) - 16) / 2 {
				little.PutUint32(nodeAt(p, i), uint32(childOf(p, 0)))
			}
			return b
		}, ""},
		{"child 2^48-1", "deep", func(b []byte) []byte {
			little.PutUint32(nodeAt(rootAt(b), 0), 1<<32-1)
			little.PutUint16(nodeAt(rootAt(b), 0)[4:], 1<<16-1)
			return b
		}, "leads to page 281474976710655"},
		{"page of another number", "inline", func(b []byte) []byte { leafAt(b)[0]++; return b }, "it says that it is page"},
		{"page of fixed duplicates", "inline", func(b []byte) []byte { leafAt(b)[10] |= 0x20; return b }, "flags 0x22"},
		{"lower below the header", "inline", func(b []byte) []byte { little.PutUint16(leafAt(b)[12:], 2); return b }, "free space"},
		{"lower odd", "inline", func(b []byte) []byte { leafAt(b)[12]++; return b }, "free space"},
		{"lower above upper", "inline", func(b []byte) []byte { little.PutUint16(leafAt(b)[12:], 65534); return b }, "free space"},
		{"upper past the page", "inline", func(b []byte) []byte { little.PutUint16(leafAt(b)[14:], 4098); return b }, "free space"},
		{"node in the header", "inline", func(b []byte) []byte { little.PutUint16(leafAt(b)[16:], 2); return b }, "node 0 at 2"},
		{"node at the page's end", "inline", func(b []byte) []byte { little.PutUint16(leafAt(b)[16:], 4092); return b }, "node 0 at 4092"},
		{"node past the page", "inline", func(b []byte) []byte { little.PutUint16(leafAt(b)[16:], 65535); return b }, "node 0 at 65535"},
		{"nodes overlap", "mixed", func(b []byte) []byte {
			p := leafAt(b)
			for i := range (int(little.Uint16(p[12:])) - 16) / 2 {
				if little.Uint32(nodeAt(p, i)) == 2000 {
					for j := range i {
						little.PutUint16(p[16+2*j:], little.Uint16(p[16+2*i:]))
					}
					return b
				}
			}
			panic("no such node")
		}, "nodes of"},
		{"value leaves the page", "inline", func(b []byte) []byte { little.PutUint32(nodeAt(leafAt(b), 0), 4000); return b }, "leaves the page"},
		{"value of 4 GiB in the page", "inline", func(b []byte) []byte { little.PutUint32(nodeAt(leafAt(b), 0), 1<<32-1); return b }, "leaves the page"},
		{"key leaves the page", "inline", func(b []byte) []byte { little.PutUint16(nodeAt(leafAt(b), 0)[6:], 65535); return b }, "leaves the page"},
		{"overflow of 4 GiB", "overflow", func(b []byte) []byte { little.PutUint32(nodeAt(leafAt(b), 0), 1<<32-1); return b }, "a value of 4294967295 bytes"},
		{"overflow on page 2^48", "overflow", overflowOn(1 << 48), "on page 281474976710656"},
		{"overflow on page 2^63", "overflow", overflowOn(1 << 63), "on page 9223372036854775808"},
		{"overflow on page 2^64-1", "overflow", overflowOn(1<<64 - 1), "on page 18446744073709551615"},
		{"overflow on a meta page", "overflow", overflowOn(1), "on page 1 of"},
		{"duplicates in a plain database", "inline", func(b []byte) []byte { nodeAt(leafAt(b), 0)[4] = 4; return b }, "several values"},
		{"nothing", "", func([]byte) []byte { return nil }, "file ends 0 bytes"},
		{"text", "", func([]byte) []byte { return []byte(strings.Repeat("not a database\n", 1000)) }, "not an LMDB file"},
		{"zeros", "", func([]byte) []byte { return make([]byte, 1<<20) }, "not an LMDB file"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var b []byte
			if row.of != "" {
				b = contents(t, shapeNamed(row.of))
			}
			_, err := walk(t, row.damage(b), "")
			switch {
			case row.says == "":
			case err == nil || !strings.Contains(err.Error(), row.says) || !errors.Is(err, meta.ErrCorrupt):
				t.Errorf("got %v", err)
			case !strings.HasPrefix(err.Error(), "file: ") || !strings.Contains(err.Error(), "page "):
				t.Errorf("does not name file and page: %v", err)
			}
		})
	}
}

func selfReference(b []byte) []byte {
	p := rootAt(b)
	for i := range (int(little.Uint16(p[12:])) - 16) / 2 {
		little.PutUint32(nodeAt(p, i), little.Uint32(p))
		little.PutUint16(nodeAt(p, i)[4:], 0)
	}
	return b
}

func overflowOn(page uint64) func([]byte) []byte {
	return func(b []byte) []byte {
		n := nodeAt(leafAt(b), 0)
		little.PutUint64(n[8+little.Uint16(n[6:]):], page)
		return b
	}
}

// Every truncation either keeps all records or is refused.
func TestTruncated(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			whole := contents(t, s)
			for at := 0; at < len(whole); at += 4096 {
				for _, n := range []int{at, at + 1, at + 17, at + 151, at + 4095} {
					if got, err := walk(t, whole[:n], s.db); err == nil && got != len(s.records) {
						t.Errorf("%d records in the first %d bytes of %d", got, n, len(whole))
					}
				}
			}
		})
	}
}

// The input is a real file with some bytes put over it and its end cut off,
// or, past the last of these, the bytes themselves.
func FuzzWalk(f *testing.F) {
	all := shapes()
	var files [][]byte
	for i, s := range all {
		b := contents(f, s)
		files = append(files, b)
		f.Add(uint8(i), uint32(0), []byte{}, uint32(len(b)))
		f.Add(uint8(i), uint32(12288+16), []byte{0, 0}, uint32(len(b)))
	}
	f.Add(uint8(255), uint32(0), []byte("not a database"), uint32(0))
	f.Fuzz(func(t *testing.T, i uint8, at uint32, patch []byte, size uint32) {
		b, db := bytes.Clone(patch), ""
		if int(i) < len(files) {
			b, db = bytes.Clone(files[i]), all[i].db
			copy(b[int(at)%len(b):], patch)
			b = b[:int(size)%(len(b)+1)]
		}
		_, _ = walk(t, b, db)
		if len(b) > 8192 { // and as hostile databases are: by the newer of two meta pages
			_, _ = walk(t, b, "train")
		}
	})
}

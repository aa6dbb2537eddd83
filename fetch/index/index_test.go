package index_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"rankfs/fetch/index"
	"rankfs/meta"
)

func build(t testing.TB, fill func(*index.Builder)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index")
	b, err := index.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	fill(b)
	if err := b.Commit("v1"); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string) *index.Index {
	t.Helper()
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// A small index with every feature in it.
func small(b *index.Builder) {
	a := b.AddFile(index.File{Path: "a\n\xff", Size: 100, Stamp: "s"})
	b.BeginChunk("host1", "host2")
	b.Add(index.Extent{File: a, Off: 0, Len: 10})
	b.Add(index.Extent{File: a, Off: 10, Len: 0})
	b.AddStride(a, 20, 5, 4)
	b.BeginChunk()
	b.BeginChunk("host3")
	b.AddStride(a, 40, 5, 2)
	z := b.AddFile(index.File{Path: "z", Size: 1<<48 - 1})
	b.Add(index.Extent{File: z, Off: 1<<48 - 2, Len: 1})
	b.Add(index.Extent{File: z, Off: 0, Len: 1<<48 - 1})
	b.Add(index.Extent{File: a, Off: 99, Len: 1})
	b.Note("remainder", "3 bytes")
	b.Note("remainder", "2 bytes")
	b.Rack("host3", "/row1/rack2")
	b.Rack("host1", "/row1/rack1")
	b.Rack("host4", "/row1/rack1")
	b.Rack("host1", "/row1/rack0")
	b.Rack("host1", "/row1/rack3")
}

func TestReadBack(t *testing.T) {
	x := open(t, build(t, small))
	var got []index.Extent
	for i := range x.Records() {
		got = append(got, x.Extent(i))
		if x.Size(i) != got[i].Len {
			t.Errorf("Size(%d) = %d, want %d", i, x.Size(i), got[i].Len)
		}
	}
	want := []index.Extent{
		{0, 0, 10}, {0, 10, 0}, {0, 20, 5}, {0, 25, 5}, {0, 30, 5}, {0, 35, 5}, {0, 40, 5}, {0, 45, 5},
		{1, 1<<48 - 2, 1}, {1, 0, 1<<48 - 1}, {0, 99, 1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("extents\n got %v\nwant %v", got, want)
	}
	chunks := []index.Chunk{x.Chunk(0), x.Chunk(1)}
	wantChunks := []index.Chunk{
		{First: 0, Records: 6, Bytes: 30, Hosts: []string{"host1", "host2"}},
		{First: 6, Records: 5, Bytes: 1<<48 + 11, Hosts: []string{"host3"}},
	}
	if x.Chunks() != 2 || !reflect.DeepEqual(chunks, wantChunks) {
		t.Errorf("chunks\n got %v\nwant %v", chunks, wantChunks)
	}
	for i := range x.Records() {
		if got, want := x.ChunkOf(i), int(i/6); got != want {
			t.Errorf("ChunkOf(%d) = %d, want %d", i, got, want)
		}
	}
	if f := x.File(0); f != (index.File{Path: "a\n\xff", Size: 100, Stamp: "s"}) {
		t.Errorf("File(0) = %+v", f)
	}
	if f := x.File(1); f != (index.File{Path: "z", Size: 1<<48 - 1}) {
		t.Errorf("File(1) = %+v", f)
	}
	if x.Files() != 2 || x.Bytes() != 1<<48+41 || x.Fingerprint() != "v1" {
		t.Errorf("files %d, bytes %d, fingerprint %q", x.Files(), x.Bytes(), x.Fingerprint())
	}
	if notes := x.Notes(); len(notes) != 1 || notes["remainder"] != "2 bytes" {
		t.Errorf("notes %v", notes)
	}
	want1 := map[string]string{"host1": "/row1/rack0", "host3": "/row1/rack2", "host4": "/row1/rack1"}
	if racks := x.Racks(); !reflect.DeepEqual(racks, want1) {
		t.Errorf("racks %v, want %v", racks, want1)
	}
}

// An index without racks is what it was before there were any: old ones can be
// read, and are the same when they are made again.
func TestFormatWithoutRacks(t *testing.T) {
	path := build(t, func(b *index.Builder) {
		f := b.AddFile(index.File{Path: "f", Size: 100, Stamp: "s"})
		b.BeginChunk("host1", "host2")
		b.AddStride(f, 0, 10, 10)
		b.Note("key", "value")
	})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const want = "21f2d51d"
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:4]) != want || text[8] != 1 {
		t.Errorf("format %d, SHA-256 %x..., want 1, %s", text[8], sum[:4], want)
	}
	if x := open(t, path); x.Racks() != nil {
		t.Errorf("racks %v", x.Racks())
	}
}

// Looking hosts up makes no garbage.
func TestAppendHosts(t *testing.T) {
	x := open(t, build(t, small))
	known, seen := map[string]int{"host1": 1, "host2": 2, "host3": 3}, 0
	var names [][]byte
	allocs := testing.AllocsPerRun(100, func() {
		names = x.AppendHosts(x.AppendHosts(names[:0], 0), 1)
		for _, name := range names {
			seen = 10*seen%1000 + known[string(name)]
		}
	})
	if seen != 123 || allocs > 0 {
		t.Errorf("seen %d, with %v allocations", seen, allocs)
	}
}

func TestEmpty(t *testing.T) {
	x := open(t, build(t, func(b *index.Builder) { b.BeginChunk("h") }))
	if x.Records() != 0 || x.Bytes() != 0 || x.Chunks() != 0 || x.Files() != 0 || len(x.Notes()) != 0 {
		t.Errorf("an empty index has %d records, %d bytes, %d chunks", x.Records(), x.Bytes(), x.Chunks())
	}
}

// The index against plain slices, over random sequences of calls.
func TestModel(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			var want []index.Extent
			var chunkOf []int
			chunk, fresh := -1, true
			path := build(t, func(b *index.Builder) {
				files := uint32(1 + r.IntN(5))
				for i := range files {
					b.AddFile(index.File{Path: fmt.Sprint(i), Size: 1 << 40})
				}
				for range r.IntN(2000) {
					e := index.Extent{File: r.Uint32N(files), Off: r.Int64N(1 << 30), Len: r.Int64N(100)}
					n := uint64(1)
					switch op := r.IntN(20); {
					case op == 0:
						b.BeginChunk()
						fresh = true
						continue
					case op < 5:
						e.Len++
						n = r.Uint64N(9) + 1
						if k := len(want); k > 0 && op < 4 { // continue what came before
							e.File, e.Len, e.Off = want[k-1].File, max(1, want[k-1].Len), want[k-1].Off+want[k-1].Len
						}
						if err := b.AddStride(e.File, e.Off, e.Len, n); err != nil {
							t.Fatal(err)
						}
					default:
						if err := b.Add(e); err != nil {
							t.Fatal(err)
						}
					}
					if fresh {
						chunk, fresh = chunk+1, false
					}
					for range n {
						want, chunkOf = append(want, e), append(chunkOf, chunk)
						e.Off += e.Len
					}
				}
			})
			x := open(t, path)
			if x.Records() != uint64(len(want)) {
				t.Fatalf("%d records, want %d", x.Records(), len(want))
			}
			for i, e := range want {
				if got := x.Extent(uint64(i)); got != e {
					t.Fatalf("record %d is at %v, want %v", i, got, e)
				}
				if got := x.ChunkOf(uint64(i)); got != chunkOf[i] {
					t.Fatalf("record %d is in chunk %d, want %d", i, got, chunkOf[i])
				}
			}
			walk(t, x)
		})
	}
}

// walk visits all that an index has, as far as it can be counted, and checks
// that chunks follow one another.
func walk(t testing.TB, x *index.Index) {
	var next uint64
	var bytes int64
	for i := range x.Chunks() {
		c := x.Chunk(i)
		if c.First != next || c.Records == 0 {
			t.Fatalf("chunk %d begins at %d, want %d", i, c.First, next)
		}
		if at := x.ChunkOffset(i); at != bytes {
			t.Fatalf("chunk %d begins at byte %d, want %d", i, at, bytes)
		}
		next, bytes = next+c.Records, bytes+c.Bytes
	}
	if next != x.Records() || bytes != x.Bytes() {
		t.Fatalf("chunks hold %d records, %d bytes of %d, %d", next, bytes, x.Records(), x.Bytes())
	}
	for i := range min(x.Files(), 1000) {
		x.File(uint32(i))
	}
	for i := range min(x.Records(), 1000) {
		for _, record := range []uint64{i, x.Records() - 1 - i} {
			e := x.Extent(record)
			if e.Off < 0 || e.Len < 0 || e.Off+e.Len > x.FileSize(e.File) {
				t.Fatalf("record %d at %v is outside its file", record, e)
			}
			if c := x.Chunk(x.ChunkOf(record)); record < c.First || record >= c.First+c.Records {
				t.Fatalf("record %d is not in its chunk %v", record, c)
			}
		}
	}
}

// Where a chunk begins is right for many of them, and for none.
func TestChunkOffset(t *testing.T) {
	for _, chunks := range []int{0, 1, 255, 256, 257, 1000} {
		x := open(t, build(t, func(b *index.Builder) {
			f := b.AddFile(index.File{Path: "f", Size: 1 << 40})
			for i := range chunks {
				b.BeginChunk()
				b.Add(index.Extent{File: f, Len: int64(i * i % 97)})
			}
		}))
		if x.Chunks() != chunks {
			t.Fatalf("%d chunks, want %d", x.Chunks(), chunks)
		}
		walk(t, x)
	}
}

func TestBuilderRefuses(t *testing.T) {
	tests := []struct {
		name string
		add  func(*index.Builder) error
	}{
		{"no such file", func(b *index.Builder) error { return b.Add(index.Extent{File: 1}) }},
		{"negative offset", func(b *index.Builder) error { return b.Add(index.Extent{Off: -1, Len: 1}) }},
		{"negative length", func(b *index.Builder) error { return b.Add(index.Extent{Len: -1}) }},
		{"past the end", func(b *index.Builder) error { return b.Add(index.Extent{Off: 99, Len: 2}) }},
		{"overflow", func(b *index.Builder) error { return b.Add(index.Extent{Off: math.MaxInt64, Len: math.MaxInt64}) }},
		{"zero stride", func(b *index.Builder) error { return b.AddStride(0, 0, 0, 5) }},
		{"negative stride", func(b *index.Builder) error { return b.AddStride(0, 0, -1, 5) }},
		{"stride overflow", func(b *index.Builder) error { return b.AddStride(0, 0, 1<<40, 1<<40) }},
		{"stride past the end", func(b *index.Builder) error { return b.AddStride(0, 1, 10, 10) }},
		{"negative file", func(b *index.Builder) error {
			b.AddFile(index.File{Size: -1})
			return b.Add(index.Extent{})
		}},
		{"rack with zero", rack("host", "a\x00b")},
		{"rack without a name", rack("host", "")},
		{"host of a rack without a name", rack("", "rack")},
		{"host of a rack with a long name", rack(strings.Repeat("h", 1025), "rack")},
		{"racks of too many hosts", func(b *index.Builder) error {
			for i := range 1<<16 + 1 {
				b.Rack(fmt.Sprint(i), "rack")
			}
			return b.Add(index.Extent{})
		}},
		{"host with zero", func(b *index.Builder) error {
			b.BeginChunk("a\x00b")
			return b.Add(index.Extent{})
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			b, err := index.Create(filepath.Join(dir, "index"))
			if err != nil {
				t.Fatal(err)
			}
			b.AddFile(index.File{Size: 100})
			if err := test.add(b); !errors.Is(err, meta.ErrInvalid) {
				t.Errorf("got %v, want ErrInvalid", err)
			}
			if err := b.Commit("v1"); !errors.Is(err, meta.ErrInvalid) {
				t.Errorf("Commit: %v, want ErrInvalid", err)
			}
			empty(t, dir)
		})
	}
}

func rack(host, rack string) func(b *index.Builder) error {
	return func(b *index.Builder) error {
		b.Rack(host, rack)
		return b.Add(index.Extent{})
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAbortLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	b, err := index.Create(filepath.Join(dir, "index"))
	if err != nil {
		t.Fatal(err)
	}
	small(b)
	b.Abort()
	b.Abort()
	empty(t, dir)
	if err := b.Commit("v1"); err == nil {
		t.Error("Commit after Abort succeeded")
	}
}

func TestCommitReplacesWhole(t *testing.T) {
	path := build(t, small)
	old := open(t, path)
	b, err := index.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Commit("v2"); err != nil {
		t.Fatal(err)
	}
	if got := open(t, path).Fingerprint(); got != "v2" {
		t.Errorf("fingerprint %q, want v2", got)
	}
	if old.Fingerprint() != "v1" || old.Extent(0).Len != 10 {
		t.Error("the index that was open has changed")
	}
}

func TestDamage(t *testing.T) {
	whole, err := os.ReadFile(build(t, small))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "index")
	refuse := func(what string, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := index.Open(path)
		if !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", what, err)
		}
		if err == nil {
			x.Close()
		}
	}
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1 << (i % 8)
		refuse(fmt.Sprint("flip ", i), flipped)
		refuse(fmt.Sprint("cut ", i), whole[:i])
	}
	refuse("longer", append(bytes.Clone(whole), 0))
}

func TestOutOfRangePanics(t *testing.T) {
	x := open(t, build(t, small))
	for name, call := range map[string]func(){
		"Extent":  func() { x.Extent(x.Records()) },
		"ChunkOf": func() { x.ChunkOf(x.Records()) },
		"Chunk":   func() { x.Chunk(x.Chunks()) },
		"File":    func() { x.File(uint32(x.Files())) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}

func TestMerge(t *testing.T) {
	got := index.Merge([]index.Extent{{0, 0, 5}, {0, 5, 5}, {1, 10, 5}, {1, 16, 0}, {1, 16, 1}, {0, 17, 1}})
	want := []index.Extent{{0, 0, 10}, {1, 10, 5}, {1, 16, 1}, {0, 17, 1}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A table of 48 MB is built and opened without becoming resident.
func TestMemory(t *testing.T) {
	const records, files = 2_000_000, 200_000
	heap := heapInUse()
	var grown uint64
	path := build(t, func(b *index.Builder) {
		for i := range files {
			f := b.AddFile(index.File{Path: fmt.Sprintf("%060d", i), Size: 1 << 20})
			for range records / files {
				b.Add(index.Extent{File: f, Len: 7})
			}
		}
		grown = heapInUse() - min(heap, heapInUse())
	})
	if grown > 4<<20 {
		t.Errorf("the heap grew by %d bytes while building", grown)
	}
	before := residentFile(t)
	x := open(t, path)
	if after := residentFile(t); after > before+4<<20 {
		t.Errorf("%d bytes became resident on opening an index of %d", after-before, x.FileBytes())
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// residentFile is how much of its file mappings this process has in memory.
func residentFile(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	field := regexp.MustCompile(`RssFile:\s*(\d+) kB`).FindSubmatch(status)
	if field == nil {
		t.Fatal("no RssFile in /proc/self/status")
	}
	n, _ := strconv.ParseInt(string(field[1]), 10, 64)
	return n << 10
}

// Whatever is in the file, an index that opens can be walked.
func FuzzOpen(f *testing.F) {
	whole, err := os.ReadFile(build(f, small))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	none, err := os.ReadFile(build(f, func(*index.Builder) {}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(none)
	path := filepath.Join(f.TempDir(), "fuzzed")
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		index.Seal(b)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := index.Open(path)
		if err != nil {
			if !errors.Is(err, meta.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		defer x.Close()
		walk(t, x)
	})
}

func BenchmarkExtent(b *testing.B) {
	const records = 1 << 20
	x := open(b, build(b, func(w *index.Builder) {
		f := w.AddFile(index.File{Size: 1 << 40})
		for i := range int64(records) {
			w.Add(index.Extent{File: f, Off: i, Len: 7})
		}
	}))
	i := uint64(0)
	for b.Loop() {
		i = i*6364136223846793005 + 1442695040888963407
		x.Extent(i >> 44)
	}
}

func BenchmarkAdd(b *testing.B) {
	w, err := index.Create(filepath.Join(b.TempDir(), "index"))
	if err != nil {
		b.Fatal(err)
	}
	defer w.Abort()
	f := w.AddFile(index.File{Size: 1 << 40})
	for b.Loop() {
		w.Add(index.Extent{File: f, Len: 7})
	}
}

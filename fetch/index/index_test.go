package index_test

import (
	"path/filepath"
	"reflect"
	"testing"

	"rankfs/fetch/index"
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

// An index says itself whether its records are those of the source.
func TestUncounted(t *testing.T) {
	if x := open(t, build(t, small)); !x.CountsRecords() {
		t.Error("records are not counted")
	}
	x := open(t, build(t, func(b *index.Builder) { b.Uncounted("lines") }))
	if want := "each is a chunk of lines, which were not counted"; x.CountsRecords() || x.Notes()["records"] != want {
		t.Errorf("notes %q", x.Notes())
	}
}

func TestEmpty(t *testing.T) {
	x := open(t, build(t, func(b *index.Builder) { b.BeginChunk("h") }))
	if x.Records() != 0 || x.Bytes() != 0 || x.Chunks() != 0 || x.Files() != 0 || len(x.Notes()) != 0 {
		t.Errorf("an empty index has %d records, %d bytes, %d chunks", x.Records(), x.Bytes(), x.Chunks())
	}
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

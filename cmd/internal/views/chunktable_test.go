package views

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rankfs/cmd/internal/catalog"
	"rankfs/fetch/batch"
	"rankfs/fetch/index"
	"rankfs/fs"
	"rankfs/shuffle/plan"
)

// viewOf is a view of a dataset in another place, made of what fill adds.
func viewOf(t *testing.T, fill func(*index.Builder, uint32)) *View {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index")
	b, err := index.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	fill(b, b.AddFile(index.File{Path: "f", Size: 1 << 47}))
	if err := b.Commit("v1"); err != nil {
		t.Fatal(err)
	}
	of, err := batch.Open(path, batch.Config{Source: "hdfs:///f", Hash: strings.Repeat("0", 64), Owners: new(plan.Owners)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { of.Opened().Close() })
	v := &View{dataset: &catalog.Dataset{Version: of}}
	v.assigned.Store(&assignment{host: "me.example.com", Batches: &Batches{Batches: &batch.Batches{Version: of}}})
	return v
}

// lines is the table as text; every line of it has the length that it says.
func lines(t *testing.T, table fs.Table) (all []string) {
	t.Helper()
	for i := range table.Lines {
		text, err := table.Append(t.Context(), nil, i)
		if err != nil {
			t.Fatal(err)
		}
		line := string(text)
		if len(line) != table.Width || strings.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("line %d has %d bytes, want %d: %q", i, len(line), table.Width, line)
		}
		all = append(all, strings.TrimRight(line, " \n"))
	}
	return all
}

func TestChunks(t *testing.T) {
	for name, tt := range map[string]struct {
		fill func(*index.Builder, uint32)
		want []string
	}{
		"none": {func(*index.Builder, uint32) {}, []string{
			"chunk of 0  offset  bytes  first  records  hosts",
		}},
		"three": {func(b *index.Builder, f uint32) {
			b.BeginChunk("data1", "data2")
			b.AddStride(f, 0, 100, 1<<20)
			b.BeginChunk()
			b.Add(index.Extent{File: f})
			b.BeginChunk("data3.example.com")
			b.Add(index.Extent{File: f, Off: 104857600, Len: 7})
		}, []string{
			"chunk of 3     offset      bytes    first  records  hosts",
			"         0          0  104857600        0  1048576  data1,data2",
			"         1  104857600          0  1048576        1  -",
			"         2  104857600          7  1048577        1  data3.example.com",
		}},
		"hosts that no list can hold": {func(b *index.Builder, f uint32) {
			b.BeginChunk("a b", "c,d", "", "-", "e\n0 0 0", "\x7f", "é", "good", "good2")
			b.Add(index.Extent{File: f, Len: 1})
			b.BeginChunk("a b")
			b.Add(index.Extent{File: f, Len: 1})
		}, []string{
			"chunk of 2  offset  bytes  first  records  hosts",
			"         0       0      1      0        1  good,good2",
			"         1       1      1      1        1  -",
		}},
		"more hosts than there is room": {func(b *index.Builder, f uint32) {
			b.BeginChunk(strings.Repeat("a", 4000), strings.Repeat("b", 100), "c")
			b.Add(index.Extent{File: f, Len: 1})
		}, []string{
			"chunk of 1  offset  bytes  first  records  hosts",
			"         0       0      1      0        1  " + strings.Repeat("a", 4000) + ",c",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			v := viewOf(t, tt.fill)
			if got := lines(t, v.Chunks()); !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// A dataset that is on this machine is held by this host, whatever it is called.
func TestChunksHere(t *testing.T) {
	v := viewOf(t, func(b *index.Builder, f uint32) { b.Add(index.Extent{File: f, Len: 5}) })
	v.dataset.Version.Source.Remote = false
	if got := lines(t, v.Chunks()); !strings.HasSuffix(got[1], "  me.example.com") {
		t.Errorf("%q", got)
	}
	if got := fmt.Sprint(v.Totals()); got != "[{chunks 1} {bytes 5} {records 1}]" {
		t.Errorf("totals are %s", got)
	}
}

// A million chunks are listed in the memory of one line, from any line on.
func TestManyChunks(t *testing.T) {
	const chunks = 1_000_000
	v := viewOf(t, func(b *index.Builder, f uint32) {
		for i := range chunks {
			b.BeginChunk("data"+strconv.Itoa(i%100), "data100", "data101")
			b.Add(index.Extent{File: f, Len: int64(i % 1000)})
		}
	})
	table := v.Chunks()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	line, at := make([]byte, 0, table.Width), 0
	for i := range chunks {
		line, _ = table.Append(t.Context(), line[:0], uint64(i+1))
		want := fmt.Sprintf("%d %d %d %d 1 data%d,data100,data101", i, at, i%1000, i, i%100)
		if i%997 == 0 && strings.Join(strings.Fields(string(line)), " ") != want {
			t.Fatalf("line %d is %q, want %s", i+1, line, want)
		}
		at += i % 1000
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<10 {
		t.Errorf("listing %d chunks left %d bytes", chunks, grown)
	}
}

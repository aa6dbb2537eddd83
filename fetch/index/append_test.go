package index_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"rankfs/fetch/index"
	"rankfs/meta"
)

// A plannedFile is what a builder is told of a file: its chunks, each with its records.
type plannedFile struct {
	index.File
	chunks []plannedChunk
}

type plannedChunk struct {
	hosts   []string
	records []index.Extent // n of Len bytes side by side, if File is not zero
}

func drawFiles(t *rapid.T) (files []plannedFile) {
	hosts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c.example.com"}), 0, 3)
	for i := range rapid.IntRange(0, 5).Draw(t, "files") {
		f := plannedFile{File: index.File{Path: fmt.Sprint(i), Size: 1 << 40, Stamp: rapid.SampledFrom([]string{"", "s"}).Draw(t, "stamp")}}
		off := int64(0)
		for range rapid.IntRange(0, 4).Draw(t, "chunks") {
			c := plannedChunk{hosts: hosts.Draw(t, "hosts")}
			for range rapid.IntRange(1, 6).Draw(t, "records") {
				off += rapid.SampledFrom([]int64{0, 0, 7}).Draw(t, "gap")
				e := index.Extent{Off: off, Len: rapid.SampledFrom([]int64{0, 3, 3, 5}).Draw(t, "length")}
				n := int64(1)
				if e.Len > 0 && rapid.Bool().Draw(t, "stride") {
					n = rapid.Int64Range(1, 3).Draw(t, "n")
					e.File = uint32(n)
				}
				c.records, off = append(c.records, e), off+n*e.Len
			}
			f.chunks = append(f.chunks, c)
		}
		files = append(files, f)
	}
	return files
}

// add adds the records of a chunk to file id, and returns how many they are.
func (c plannedChunk) add(b *index.Builder, id uint32) (n uint64) {
	for _, e := range c.records {
		if stride := uint64(e.File); stride > 0 {
			b.AddStride(id, e.Off, e.Len, stride)
			n += stride
			continue
		}
		b.Add(index.Extent{File: id, Off: e.Off, Len: e.Len})
		n++
	}
	return n
}

// However chunks are divided among indexes, in whichever order these are built, and in
// however many steps their records are appended: the index is that of one builder.
func TestAnIndexOfOthersIsThatOfOneBuilder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		create := func(name string) *index.Builder {
			b, err := index.Create(filepath.Join(dir, name))
			if err != nil {
				r.Fatal(err)
			}
			return b
		}
		commit := func(b *index.Builder) {
			if err := b.Commit("v"); err != nil {
				r.Fatal(err)
			}
		}
		files := drawFiles(r)
		whole := create("whole")
		for _, f := range files {
			id := whole.AddFile(f.File)
			for _, c := range f.chunks {
				whole.BeginChunk(c.hosts...)
				c.add(whole, id)
			}
		}
		commit(whole)

		// Each has chunks of any files, in an order of its own.
		type place struct {
			other    int
			first, n uint64
		}
		others := make([]*index.Builder, rapid.IntRange(1, 3).Draw(r, "others"))
		for i := range others {
			others[i] = create(fmt.Sprint("other", i))
		}
		var all [][2]int
		for i, f := range files {
			for j := range f.chunks {
				all = append(all, [2]int{i, j})
			}
		}
		places := make(map[[2]int]place)
		if len(all) > 0 {
			for _, at := range rapid.Permutation(all).Draw(r, "built in the order") {
				i := rapid.IntRange(0, len(others)-1).Draw(r, "other")
				b := others[i]
				f := files[at[0]]
				first := b.Records()
				places[at] = place{i, first, f.chunks[at[1]].add(b, b.AddFile(f.File))}
			}
		}
		built := make([]*index.Index, len(others))
		for i, b := range others {
			commit(b)
			if built[i], err = index.Open(filepath.Join(dir, fmt.Sprint("other", i))); err != nil {
				r.Fatal(err)
			}
			defer built[i].Close()
		}
		merged := create("merged")
		for i, f := range files {
			id := merged.AddFile(f.File)
			for j, c := range f.chunks {
				merged.BeginChunk(c.hosts...)
				p := places[[2]int{i, j}]
				for p.n > 0 {
					n := rapid.Uint64Range(1, p.n).Draw(r, "at once")
					if err := merged.Append(built[p.other], p.first, n, id); err != nil {
						r.Fatal(err)
					}
					p.first, p.n = p.first+n, p.n-n
				}
			}
		}
		commit(merged)
		want, err := os.ReadFile(filepath.Join(dir, "whole"))
		got, err2 := os.ReadFile(filepath.Join(dir, "merged"))
		if err := errors.Join(err, err2); err != nil || string(got) != string(want) {
			r.Fatalf("the index of others is not that of one builder, %v", err)
		}
	})
}

func TestAppendRefuses(t *testing.T) {
	x := open(t, build(t, small)) // 8 records of file 0, 2 of file 1, 1 of file 0
	for name, at := range map[string][2]uint64{
		"behind the last": {11, 1}, "too many": {0, 1 << 63}, "wraps": {1, 1<<64 - 1}, "of two files": {6, 4}, "of two files again": {9, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := index.Create(filepath.Join(t.TempDir(), "index"))
			if err != nil {
				t.Fatal(err)
			}
			defer b.Abort()
			id := b.AddFile(index.File{Size: 1 << 48})
			if err := b.Append(x, at[0], at[1], id); !errors.Is(err, meta.ErrInvalid) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("beyond the file", func(t *testing.T) {
		b, err := index.Create(filepath.Join(t.TempDir(), "index"))
		if err != nil {
			t.Fatal(err)
		}
		defer b.Abort()
		if err := b.Append(x, 0, 1, b.AddFile(index.File{Size: 9})); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	})
}

// Records are found by their file and their place in it.
func TestRecordsOfAFile(t *testing.T) {
	x := open(t, build(t, func(b *index.Builder) {
		a := b.AddFile(index.File{Path: "a", Size: 100})
		b.Add(index.Extent{File: a, Off: 0, Len: 10})
		b.Add(index.Extent{File: a, Off: 10, Len: 20})
		b.AddFile(index.File{Path: "empty"})
		c := b.AddFile(index.File{Path: "c", Size: 100})
		b.AddStride(c, 0, 5, 4)
	}))
	for file, want := range [][2]uint64{{0, 2}, {2, 0}, {2, 4}} {
		if first, n := x.FileRecords(uint32(file)); [2]uint64{first, n} != want {
			t.Errorf("file %d: records %d+%d, want %v", file, first, n, want)
		}
	}
	for off, want := range map[int64]uint64{0: 2, 1: 3, 5: 3, 15: 5, 16: 6} {
		if got := x.RecordAt(2, 4, off); got != want {
			t.Errorf("at %d: record %d, want %d", off, got, want)
		}
	}
}

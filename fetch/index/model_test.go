package index_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"rankfs/fetch/index"
)

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

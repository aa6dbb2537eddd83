package batch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/fetch/peers"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// chunked is the version of a file of lines, taken for a remote source, in chunks of so
// many on hosts a and b by turns.
func chunked(t *testing.T, o *plan.Owners, chunks, lines int) *Version {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "lines")
	var text []byte
	var ends []int64
	for i := range chunks * lines {
		text = fmt.Appendf(text, "%d\n", i*i)
		ends = append(ends, int64(len(text)))
	}
	must(os.WriteFile(path, text, 0o600))
	src, err := fetch.Open("file:"+path, nil)
	must(err)
	defer src.Close()
	version, err := src.Fingerprint(t.Context())
	must(err)
	b, err := index.Create(path + ".index")
	must(err)
	f, at := b.AddFile(index.File{Path: path, Size: int64(len(text)), Stamp: version}), int64(0)
	for i, end := range ends {
		if i%lines == 0 {
			b.BeginChunk([]string{"a", "b"}[i/lines%2])
		}
		must(b.Add(index.Extent{File: f, Off: at, Len: end - at}))
		at = end
	}
	must(b.Commit(version))
	v, err := Open(path+".index", Config{Source: "file:" + path, Hash: fmt.Sprintf("%064d", 7), Owners: o, Origin: o.Self})
	must(err)
	t.Cleanup(func() { v.Opened().Close() })
	v.Source.Remote = true
	return v
}

// A memory is a cache of chunks, without room if it is full.
type memory struct {
	version *Version
	full    bool
	chunks  map[int][]byte
	misses  int
	copied  int // bytes, out of slabs
}

func (m *memory) HasChunk(number int) bool { return m.chunks[number] != nil }

func (m *memory) Chunk(ctx context.Context, number int) (Slab, error) {
	if m.full {
		return nil, fmt.Errorf("chunk %d: %w", number, meta.ErrNoSpace)
	}
	if m.chunks[number] == nil {
		m.misses++
		m.chunks[number] = make([]byte, m.version.Index.ChunkBytes(number))
		if err := m.version.FillChunk(ctx, number, m.chunks[number]); err != nil {
			return nil, err
		}
	}
	return &slab{m, bytes.NewReader(m.chunks[number])}, nil
}

// give gives a fill the chunk at which it has stopped.
func (m *memory) give(r *Ranges) {
	s, err := m.Chunk(r.Context(), r.Chunk)
	if err == nil {
		defer s.Release()
	}
	r.Copy(s, "ram", err)
}

type slab struct {
	memory *memory
	io.ReaderAt
}

func (s *slab) ReadAt(p []byte, off int64) (n int, err error) {
	n, err = s.ReaderAt.ReadAt(p, off)
	s.memory.copied += n
	return n, err
}

func (*slab) Release() {}

// served is a node that has all chunks in its cache, asked by another.
type served struct {
	Peers
	server Server
	asked  int
}

func (s *served) BacksOff(string) bool { return false }

func (s *served) Hedge(ctx context.Context, _ string, w peers.Want, dst [][]byte, _ func(context.Context) error) (bool, error) {
	s.asked++
	var all []byte
	err := s.server.Gather(ctx, w.Dataset, w.Runs, func(p []byte) error { all = append(all, p...); return nil })
	for _, part := range dst {
		all = all[copy(part, all):]
	}
	return false, err
}

// By whichever way its bytes come, a batch is the same, and a chunk that stays in the
// cache leaves the source once.
func TestWaysToABatch(t *testing.T) {
	o := &plan.Owners{Self: "node-a"}
	o.Follow(nodesOn("a"))
	const chunks = 8
	v := chunked(t, o, chunks, 6_000)
	view, err := meta.View{Dataset: "d"}.With("ranks=3,batch=9000,order=full,seed=4")
	if err != nil {
		t.Fatal(err)
	}
	p := plan.New(view, v.Plans)
	sizes, err := NewSizes()
	if err != nil {
		t.Fatal(err)
	}
	defer sizes.Close()
	fill := func(b *Batches, cache *memory) (all [][]byte) {
		for rank := range p.Cut().Ranks {
			for step := range p.Steps() {
				dst := make([]byte, b.Size(rank, step))
				for ranges, err := range b.Fill(t.Context(), rank, step, dst) {
					if err != nil {
						t.Fatalf("rank %d, step %d: %v", rank, step, err)
					}
					cache.give(ranges)
				}
				all = append(all, dst)
			}
		}
		return all
	}
	want := fill(&Batches{Plan: p, Version: v, Sizes: sizes}, nil)
	same := func(way string, got [][]byte) {
		t.Helper()
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("%s: batch %d has %d bytes, want %d, or other ones", way, i, len(got[i]), len(want[i]))
			}
		}
	}
	cache := &memory{version: v, chunks: make(map[int][]byte)}
	own := &Chunks{Version: v}
	same("by chunks", fill(&Batches{Plan: p, Version: v, Sizes: sizes, Chunks: own}, cache))
	if cache.misses != chunks || int64(cache.copied) != v.Index.Bytes() {
		t.Errorf("%d chunks left the source %d times; %d of %d bytes were copied out of them", chunks, cache.misses, cache.copied, v.Index.Bytes())
	}
	same("without room", fill(&Batches{Plan: p, Version: v, Sizes: sizes, Chunks: own}, &memory{version: v, full: true}))
	owner := &served{server: Server{Find: func(peers.ID) *Version { return v }, Slabs: func(*Version) Slabs { return cache }}}
	elsewhere := &plan.Owners{Self: "node-b"}
	elsewhere.Follow(nodesOn("a", "b"))
	other := chunked(t, elsewhere, chunks, 6_000)
	half := &memory{version: other, chunks: make(map[int][]byte)}
	same("of another node's chunks too", fill(&Batches{
		Plan: p, Version: other, Sizes: sizes, Peers: owner, Chunks: &Chunks{Version: other},
	}, half))
	if owner.asked == 0 || half.misses != chunks/2 || cache.misses != chunks {
		t.Errorf("the other node was asked %d times; %d chunks left the source here, %d there", owner.asked, half.misses, cache.misses)
	}
}

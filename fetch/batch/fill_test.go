package batch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"rankfs/cache/peers"
	"rankfs/fetch"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// chunked is the version of a file of so many lines, whose chunks are those of its source,
// taken for a remote source.
func chunked(t *testing.T, o *plan.Owners, lines int) *Version {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lines")
	var text bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&text, "%d\n", i*i)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := fetch.Open("file:"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if err := fetch.Build(t.Context(), src, path+".index", nil); err != nil {
		t.Fatal(err)
	}
	v, err := Open(path+".index", Config{Source: "file:" + path, Hash: fmt.Sprintf("%064d", 7), Owners: o, Origin: o.Self})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Source.Opened.Close() })
	v.Source.Remote = true
	return v
}

// A memory is a cache of chunks, without room if it is full.
type memory struct {
	version *Version
	full    bool
	chunks  map[int][]byte
	misses  int
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
	return slab{bytes.NewReader(m.chunks[number])}, nil
}

type slab struct{ io.ReaderAt }

func (slab) Tier() string { return "ram" }
func (slab) Release()     {}

// served is the node that owns all chunks, asked by another.
type served struct {
	Peers
	server Server
	asked  int
}

func (s *served) Rests(string) bool { return false }

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
	v := chunked(t, o, 50_000)
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
	fill := func(b *Batches) (all [][]byte) {
		for rank := range p.Cut().Ranks {
			for step := range p.Steps() {
				dst := make([]byte, b.Size(rank, step))
				if err := b.Fill(t.Context(), rank, step, dst); err != nil {
					t.Fatalf("rank %d, step %d: %v", rank, step, err)
				}
				all = append(all, dst)
			}
		}
		return all
	}
	want := fill(&Batches{Plan: p, Version: v, Sizes: sizes})
	same := func(way string, got [][]byte) {
		t.Helper()
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("%s: batch %d has %d bytes, want %d, or other ones", way, i, len(got[i]), len(want[i]))
			}
		}
	}
	cache := &memory{version: v, chunks: make(map[int][]byte)}
	own := &Chunks{Version: v, Slabs: cache}
	same("by chunks", fill(&Batches{Plan: p, Version: v, Sizes: sizes, Chunks: own}))
	if cache.misses != v.Index.Chunks() {
		t.Errorf("%d chunks left the source %d times", v.Index.Chunks(), cache.misses)
	}
	full := &Chunks{Version: v, Slabs: &memory{version: v, full: true}}
	same("without room", fill(&Batches{Plan: p, Version: v, Sizes: sizes, Chunks: full}))
	owner := &served{server: Server{Find: func(peers.ID) *Version { return v }, Chunks: func(*Version) *Chunks { return own }}}
	elsewhere := &plan.Owners{Self: "node-b"}
	elsewhere.Follow(nodesOn("a"))
	other := chunked(t, elsewhere, 50_000)
	same("from the owner of the chunks", fill(&Batches{
		Plan: p, Version: other, Sizes: sizes, Peers: owner, Chunks: &Chunks{Version: other, Slabs: cache},
	}))
	if owner.asked == 0 || cache.misses != v.Index.Chunks() {
		t.Errorf("the owner was asked %d times, and chunks left the source %d times", owner.asked, cache.misses)
	}
}

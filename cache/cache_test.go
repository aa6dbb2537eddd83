package cache_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"rankfs/cache"
)

// A series whose bytes say which batch they belong to, all through.
type testSeries struct {
	id      byte
	steps   uint64
	size    int64
	once    bool
	share   bool
	noise   bool        // batches are random bytes, which nothing packs
	quarter bool        // a quarter of each is, all through
	last    bool        // no epoch follows
	next    *testSeries // that does; nil: the same again
	fail    func(rank, step uint64) error
	gate    chan struct{} // if set, a fill takes a token

	mu    sync.Mutex
	fills map[[2]uint64]int
}

func (p *testSeries) ID() [16]byte    { return [16]byte{p.id} }
func (p *testSeries) Dataset() string { return "test" }
func (p *testSeries) Key(rank, step uint64) cache.Key {
	return cache.Key{Series: p.ID(), Rank: rank, Step: step}
}

func (p *testSeries) Known(rank, step uint64) (cache.Key, bool) { return p.Key(rank, step), true }

func (p *testSeries) Find(k cache.Key) (rank, step uint64, ok bool) {
	return k.Rank, k.Step, k.Series == p.ID()
}

func (p *testSeries) Next() cache.Series {
	switch {
	case p.last:
		return nil
	case p.next != nil:
		return p.next
	}
	return p
}
func (p *testSeries) Once() bool                   { return p.once }
func (p *testSeries) Shared() bool                 { return p.share }
func (p *testSeries) Ahead(uint64, uint64) bool    { return true }
func (p *testSeries) Steps() uint64                { return p.steps }
func (p *testSeries) Size(rank, step uint64) int64 { return p.size }
func (p *testSeries) Fill(ctx context.Context, rank, step uint64, dst []byte) iter.Seq2[cache.Input, error] {
	return cache.Whole(p.fill(ctx, rank, step, dst))
}

func (p *testSeries) fill(ctx context.Context, rank, step uint64, dst []byte) error {
	if p.gate != nil {
		select {
		case <-p.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.mu.Lock()
	if p.fills == nil {
		p.fills = make(map[[2]uint64]int)
	}
	p.fills[[2]uint64{rank, step}]++
	p.mu.Unlock()
	if p.fail != nil {
		if err := p.fail(rank, step); err != nil {
			return err
		}
	}
	copy(dst, p.want(rank, step))
	return nil
}

func (p *testSeries) filled(rank, step uint64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fills[[2]uint64{rank, step}]
}

// want is the batch: its series, rank and step over and over, or noise. It is made
// by copies alone, which the race detector does not slow down.
func (p *testSeries) want(rank, step uint64) []byte {
	if p.noise {
		from := (rank*7919 + step*104729) % uint64(len(noise())/2)
		return noise()[from:][:p.size]
	}
	b := make([]byte, p.size)
	word := binary.LittleEndian.AppendUint64(nil, uint64(p.id))
	word = binary.LittleEndian.AppendUint64(word, rank)
	word = binary.LittleEndian.AppendUint64(word, step)
	for n := copy(b, word); n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
	if p.quarter {
		from := noise()[(rank*7919+step*104729)%uint64(len(noise())/2):]
		for at := 0; at < len(b); at += 4096 {
			copy(b[at:min(at+1024, len(b))], from[at:])
		}
	}
	return b
}

// noise is 2 MiB that nothing packs.
var noise = sync.OnceValue(func() []byte {
	b := make([]byte, 2<<20)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
})

func newCache(t testing.TB, c cache.Config) *cache.Cache {
	t.Helper()
	if c.RAMBytes == 0 {
		c.RAMBytes = 64 << 20
	}
	k, err := cache.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		s, readers := k.Stats(), k.Readers()
		if s.RAM.Used != 0 || s.RAM.Slabs != 0 || s.Handles != 0 || readers != 0 {
			t.Errorf("after close: %+v and %d readers, want every gauge zero", s, readers)
		}
	})
	return k
}

func open(t testing.TB, k *cache.Cache, p cache.Series, rank, step uint64) *cache.Slab {
	t.Helper()
	s, err := k.Open(t.Context(), nil, p, rank, step, p.Key(rank, step))
	if err != nil {
		t.Fatalf("open rank %d step %d: %v", rank, step, err)
	}
	return s
}

// check compares a slab with its series by a descriptor of its own, as the
// kernel would read it.
func check(t *testing.T, s *cache.Slab, p *testSeries, rank, step uint64) {
	t.Helper()
	got, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", s.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, p.want(rank, step)) {
		t.Fatalf("rank %d step %d: wrong bytes (%d of them, want %d)", rank, step, len(got), p.size)
	}
}

// awaitQuiet waits until no fill is begun any more: the counters stand still.
func awaitQuiet(k *cache.Cache) {
	for last, same := uint64(0), 0; same < 20; time.Sleep(time.Millisecond) {
		if n := k.Stats().Fills; n == last {
			same++
		} else {
			last, same = n, 0
		}
	}
}

package cache_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
	asked   bool        // a batch comes if it is asked for, and not before
	next    *testSeries // that does; nil: the same again
	fail    func(rank, step uint64) error
	gate    chan struct{} // if set, a fill takes a token

	mu    sync.Mutex
	fills map[[2]uint64]int
}

// A series is what tests make a cache.Series of: what it can do, and what never changes of it.
type series interface {
	traits() cache.Series
	cache.Keys
	Find(k cache.Key) (rank, step uint64, ok bool)
	cache.Course
	cache.Filler
}

// as is a series as the cache is given it.
func as(p series) *cache.Series {
	s := p.traits()
	s.Job, s.Dataset = cmp.Or(s.Job, cache.JobOf(s.ID)), "test"
	s.Keys, s.Find, s.Course, s.Filler = p, p.Find, p, p
	return &s
}

func (p *testSeries) ID() [16]byte { return [16]byte{p.id} }

func (p *testSeries) traits() cache.Series {
	return cache.Series{ID: p.ID(), Steps: p.steps, Shared: p.share, Once: p.once, Ahead: !p.asked}
}

func (p *testSeries) Key(rank, step uint64) cache.Key {
	return cache.Key{Series: p.ID(), Rank: rank, Step: step}
}

func (p *testSeries) Known(rank, step uint64) (cache.Key, bool) { return p.Key(rank, step), true }

func (p *testSeries) Find(k cache.Key) (rank, step uint64, ok bool) {
	return k.Rank, k.Step, k.Series == p.ID()
}

func (p *testSeries) Next() *cache.Series {
	switch {
	case p.last:
		return nil
	case p.next != nil:
		return as(p.next)
	}
	return as(p)
}

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
	p.write(dst, rank, step, 0)
	return nil
}

func (p *testSeries) filled(rank, step uint64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fills[[2]uint64{rank, step}]
}

// write makes a part of the batch: its series, rank and step over and over, or noise. It is
// made in place and by copies alone: the race detector slows down what looks at each byte,
// and all that is on Go's heap, which slabs are not.
func (p *testSeries) write(part []byte, rank, step uint64, off int64) {
	if p.noise {
		copy(part, noise()[p.noisy(rank, step)+off:])
		return
	}
	for n := copy(part, p.words(rank, step, off)); n < len(part); n *= 2 {
		copy(part[n:], part[:n])
	}
	if p.quarter {
		from := noise()[p.noisy(rank, step)+off:]
		for at := 0; at < len(part); at += 4096 {
			copy(part[at:min(at+1024, len(part))], from[at:])
		}
	}
}

// words are what a batch repeats, as seen from an offset.
func (p *testSeries) words(rank, step uint64, off int64) []byte {
	word := binary.LittleEndian.AppendUint64(nil, uint64(p.id))
	word = binary.LittleEndian.AppendUint64(word, rank)
	word = binary.LittleEndian.AppendUint64(word, step)
	at := off % int64(len(word))
	return append(word[at:len(word):len(word)], word[:at]...)
}

func (p *testSeries) noisy(rank, step uint64) int64 {
	return int64((rank*7919 + step*104729) % uint64(len(noise())/2))
}

// has says whether that part of the batch has the bytes it should have.
func (p *testSeries) has(part []byte, rank, step uint64, off int64) bool {
	switch {
	case p.noise:
		return bytes.HasPrefix(noise()[p.noisy(rank, step)+off:], part)
	case p.quarter:
		want := make([]byte, len(part))
		p.write(want, rank, step, off)
		return bytes.Equal(part, want)
	}
	words := p.words(rank, step, off)
	n := min(len(part), len(words))
	return bytes.Equal(part[:n], words[:n]) && bytes.Equal(part[n:], part[:len(part)-n])
}

// noise is 2 MiB that nothing packs, outside of Go's heap.
var noise = sync.OnceValue(func() []byte {
	b, err := unix.Mmap(-1, 0, 2<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic(err)
	}
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

func open(t testing.TB, k *cache.Cache, p series, rank, step uint64) *cache.Slab {
	t.Helper()
	s, err := k.Open(t.Context(), nil, as(p), rank, step, p.Key(rank, step))
	if err != nil {
		t.Fatalf("open rank %d step %d: %v", rank, step, err)
	}
	return s
}

// check compares a slab with its series by a descriptor of its own, as the
// kernel would read it.
func check(t *testing.T, s *cache.Slab, p *testSeries, rank, step uint64) {
	t.Helper()
	got := mapped(t, s)
	defer unix.Munmap(got)
	if int64(len(got)) != p.size || !p.has(got, rank, step, 0) {
		t.Fatalf("rank %d step %d: wrong bytes (%d of them, want %d)", rank, step, len(got), p.size)
	}
}

// mapped is a mapping of all of a slab, as a rank would have it.
func mapped(t *testing.T, s *cache.Slab) []byte {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", s.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	i, err := f.Stat()
	if err != nil || i.Size() == 0 {
		return nil
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(i.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	return m
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

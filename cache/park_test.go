package cache_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/test/eventually"
)

// aKernel keeps the files that are registered, as the kernel does, though their
// descriptors are closed.
type aKernel struct {
	mu    sync.Mutex
	last  int32
	files map[int32][]byte
}

func (k *aKernel) Register(fd int) (int32, error) {
	mem, err := unix.Mmap(fd, 0, 1, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.files == nil {
		k.files = make(map[int32][]byte)
	}
	k.last++
	k.files[k.last] = mem
	return k.last, nil
}

func (k *aKernel) Unregister(id int32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	unix.Munmap(k.files[id])
	delete(k.files, id)
}

// Memory has far more batches than the daemon has files, of any size: all are
// there, and an open of any has its bytes, also while others open it.
func TestMoreBatchesThanFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const files, many = 20, 200
		kernel := &aKernel{}
		k := newCache(t, cache.Config{RAMBytes: 256 << 20, Backing: kernel, MaxAhead: 1})
		k.KeepFiles(files)
		var series []*testSeries
		for i, size := range []int64{0, 1, 4096, 4097, 100_000, 128 << 10, 128<<10 + 1, 300_000} {
			series = append(series, &testSeries{id: byte(i), steps: many, size: size, last: true})
		}
		for _, p := range series {
			for step := range p.steps {
				s := open(t, k, p, 0, step)
				check(t, s, p, 0, step)
				s.Release()
			}
		}
		awaitQuiet(k)
		for round := range 2 {
			for _, p := range series {
				for step := range p.steps {
					if tier, _ := k.Contains(p.Key(0, step)); tier != "ram" {
						t.Fatalf("round %d: a batch of %d bytes is in %q", round, p.size, tier)
					}
				}
			}
			if n, slabs := k.Files(), k.Stats().RAM.Slabs; n > files+8 || slabs != len(series)*many {
				t.Errorf("round %d: %d files and %d slabs, want %d and %d", round, n, slabs, files, len(series)*many)
			}
			var ranks sync.WaitGroup
			for rank := range uint64(4) {
				ranks.Go(func() {
					rnd := rand.New(rand.NewPCG(uint64(round), rank%2)) // two by two the same ones at the same time
					for range 500 {
						p, step := series[rnd.IntN(len(series))], rnd.Uint64N(many)
						s, err := k.Open(t.Context(), nil, as(p), 0, step, p.Key(0, step))
						if err != nil {
							t.Error(err)
							return
						}
						got := make([]byte, p.size)
						if _, err := s.ReadAt(got, 0); err != nil || !p.has(got, 0, step, 0) {
							t.Errorf("%d bytes of step %d are wrong: %v", p.size, step, err)
						}
						check(t, s, p, 0, step)
						s.Release()
					}
				})
			}
			ranks.Wait()
		}
		if s := k.Stats(); s.Fills != uint64(len(series)*many) || s.Evicted != 0 || s.RAM.Used > s.RAM.Budget {
			t.Errorf("%+v", s)
		}
	})
}

// A mapping of a batch that has lost its file since has its bytes, and counts.
func TestMappedAndParked(t *testing.T) {
	for _, size := range []int64{4096, 200_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			k := newCache(t, cache.Config{RAMBytes: 64 << 20, Backing: &aKernel{}, MaxAhead: 1})
			k.KeepFiles(4)
			p := &testSeries{steps: 100, size: size, last: true}
			s := open(t, k, p, 0, 0)
			m := mapped(t, s)
			s.Release()
			for step := uint64(1); step < p.steps; step++ {
				open(t, k, p, 0, step).Release()
			}
			awaitQuiet(k)
			k.DiscardAll(p.ID())
			other := &testSeries{id: 1, steps: 100, size: size, last: true}
			for step := range other.steps {
				open(t, k, other, 0, step).Release()
			}
			if !p.has(m, 0, 0, 0) {
				t.Error("the mapping has other bytes")
			}
			if d := k.Stats().RAM.Dying; d < size {
				t.Errorf("%d bytes are dying, and %d are mapped", d, size)
			}
			unix.Munmap(m)
		})
	}
}

// What has no file makes way as what has one: the budget holds, and what goes to
// a disk comes back from there.
func TestParkedMakeWay(t *testing.T) {
	for _, size := range []int64{9000, 150_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			k := newCache(t, cache.Config{RAMBytes: 16 << 20, Policy: "all-disk", Backing: &aKernel{}, NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: 256 << 20}}})
			k.KeepFiles(30)
			p := &testSeries{steps: uint64(24<<20/size) / 8, size: size, noise: true}
			var ranks sync.WaitGroup
			for rank := range uint64(8) {
				ranks.Go(func() {
					for epoch := range 2 {
						for step := range p.steps {
							s, err := k.Open(t.Context(), nil, as(p), rank, step, p.Key(rank, step))
							if err != nil {
								t.Errorf("epoch %d: %v", epoch, err)
								return
							}
							check(t, s, p, rank, step)
							s.Release()
						}
						eventually.True(t, "what is to go is written", func() bool { return k.Stats().NVMe[0].Slabs >= 16 })
					}
				})
			}
			ranks.Wait()
			if s := k.Stats(); s.Restored == 0 || s.RAM.Used > s.RAM.Budget || s.RAM.Slabs < 32 {
				t.Errorf("%d restored, %d of %d bytes used by %d slabs", s.Restored, s.RAM.Used, s.RAM.Budget, s.RAM.Slabs)
			}
		})
	}
}

// A small batch in memory costs little beside its bytes, however many there are. In
// a soak there are a million.
func TestBytesBesideSmallBatches(t *testing.T) {
	n, files := uint64(20_000), 500
	if *soak > time.Minute {
		n, files = 1_000_000, 1<<14
	}
	k := newCache(t, cache.Config{RAMBytes: int64(n)*4096 + 256<<20})
	k.KeepFiles(files)
	p, few := &quiet{steps: n / 8, size: 4096}, &quiet{id: 1, steps: 10, size: 4096}
	before := heapBytes()
	begin := time.Now()
	for step := range n {
		open(t, k, p, step%8, step/8).Release()
	}
	filled := time.Since(begin)
	after := heapBytes()
	for step := range few.steps {
		open(t, k, few, 0, step).Release()
	}
	took := func(p series, of uint64) time.Duration {
		rnd, begin := rand.New(rand.NewPCG(1, 2)), time.Now()
		for range 60_000 {
			step := rnd.Uint64N(of)
			s := open(t, k, p, step%8, step/8)
			s.Release()
		}
		return time.Since(begin) / 60_000
	}
	ofMany, ofFew := took(p, n), took(few, few.steps)
	each := float64(int64(after)-int64(before)) / float64(n)
	t.Logf("%d batches filled in %v; %.0f bytes of heap for each; an open of one takes %v, of ten %v", n, filled, each, ofMany, ofFew)
	if s := k.Stats(); n == 1_000_000 && each > 300 || s.RAM.Slabs < int(n) || s.Evicted > 0 {
		t.Errorf("%.0f bytes of heap for each of %d batches, %d evicted", each, s.RAM.Slabs, s.Evicted)
	}
}

// quiet is a series that keeps no account of its fills.
type quiet struct {
	id    byte
	steps uint64
	size  int64
}

func (p *quiet) ID() [16]byte { return [16]byte{100 + p.id} }
func (p *quiet) traits() cache.Series {
	return cache.Series{ID: p.ID(), Steps: p.steps, Ahead: true}
}
func (p *quiet) Key(rank, step uint64) cache.Key {
	return cache.Key{Series: p.ID(), Rank: rank, Step: step}
}

func (p *quiet) Known(rank, step uint64) (cache.Key, bool) { return p.Key(rank, step), true }
func (p *quiet) Find(k cache.Key) (rank, step uint64, ok bool) {
	return k.Rank, k.Step, k.Series == p.ID()
}
func (p *quiet) Next() *cache.Series          { return nil }
func (p *quiet) Size(rank, step uint64) int64 { return p.size }
func (p *quiet) Fill(_ context.Context, rank, step uint64, dst []byte) iter.Seq2[cache.Input, error] {
	binary.LittleEndian.PutUint64(dst, step)
	return cache.Whole(nil)
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

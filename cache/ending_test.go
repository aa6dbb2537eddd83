package cache_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
)

// A countedSeries counts how often it is asked for a size, which begins each try
// to fill.
type countedSeries struct {
	*testSeries
	tries atomic.Int32
}

func (p *countedSeries) Size(rank, step uint64) int64 {
	if p.tries.Add(1) > 100 {
		return 0 // or it never ends
	}
	return p.testSeries.Size(rank, step)
}

// Where there is no room for what comes after the epoch's end, workers leave it
// at that until the rank has moved.
func TestNoRoomBeyondTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &countedSeries{testSeries: &testSeries{id: 2, steps: 4, size: 4 << 20, once: true, last: true}}
		p := &endingSeries{&testSeries{id: 1, steps: 4, size: 4 << 20, once: true}, next}
		k := newCache(t, cache.Config{RAMBytes: 16 << 20})
		for step := range uint64(3) { // and the fourth is made ready
			defer open(t, k, p, 0, step).Release()
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := next.tries.Load(); n == 0 || n > 10 {
			t.Errorf("%d tries to fill batches for which there is no room", n)
		}
	})
}

// A reader that releases a slab, reads one, or has just waited for one, while the cache
// closes, finds it whole and releases it once.
func TestCloseBesideOthers(t *testing.T) {
	for range 30 {
		k, err := cache.New(cache.Config{RAMBytes: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		p := &testSeries{id: 1, steps: 1 << 20, size: 5000}
		var others, began sync.WaitGroup
		var closing atomic.Bool
		for rank := range uint64(4) {
			began.Add(1)
			others.Go(func() {
				begun := sync.OnceFunc(began.Done)
				defer begun()
				var held []*cache.Slab
				for step := uint64(0); ; step++ {
					s, err := k.Open(t.Context(), nil, as(p), rank, step, p.Key(rank, step))
					if err != nil {
						if !closing.Load() {
							t.Error(err)
						}
						break
					}
					if held = append(held, s); step >= 20 { // there is room for a hundred times as much
						begun()
						held[0].Release()
						held = held[1:]
					}
					runtime.Gosched() // or one may keep the only processor for a second
				}
				for _, s := range held {
					if tier := s.Tier(); tier != "ram" {
						t.Errorf("what a rank holds is in %q", tier)
					}
					s.Release()
				}
			})
		}
		began.Wait()
		closing.Store(true)
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		others.Wait()
		if n := k.Stats(); n.Handles != 0 || n.RAM.Used != 0 || n.RAM.Slabs != 0 || k.Readers() != 0 {
			t.Errorf("%+v", n)
		}
		if tier, there := k.Contains(p.Key(0, 0)); there {
			t.Errorf("a batch is in %s of what is closed", tier)
		}
	}
}

// An endingSeries is followed by another.
type endingSeries struct {
	*testSeries
	then series
}

func (p *endingSeries) Next() *cache.Series { return as(p.then) }

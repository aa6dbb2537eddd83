package cache_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/test/belady"
)

// A chunked series is one epoch of batches that all epochs have, in an order of
// its own.
type chunked struct {
	*testSeries
	epoch  byte
	order  []uint64 // by step
	place  []uint64 // by chunk
	follow *chunked
}

func (p *chunked) traits() cache.Series {
	s := p.testSeries.traits()
	s.ID = [16]byte{p.id, p.epoch}
	return s
}

func (p *chunked) Key(_, step uint64) cache.Key {
	return cache.Key{Series: [16]byte{p.id}, Step: p.order[step]}
}
func (p *chunked) Known(rank, step uint64) (cache.Key, bool) { return p.Key(rank, step), true }
func (p *chunked) Find(k cache.Key) (rank, step uint64, ok bool) {
	return 0, p.place[k.Step], k.Series == [16]byte{p.id}
}
func (p *chunked) Next() *cache.Series {
	if p.follow == nil {
		return nil
	}
	return as(p.follow)
}

// epochs are n epochs of so many chunks, in a new order each, or all in one.
func epochs(n int, chunks uint64, shuffled bool) []*chunked {
	return epochsOf(&testSeries{id: 9, steps: chunks, size: 32 << 10, noise: true, fail: slow(2 * time.Millisecond)}, n, shuffled)
}

func epochsOf(base *testSeries, n int, shuffled bool) []*chunked {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]*chunked, n)
	for e := range all {
		p := &chunked{testSeries: base, epoch: byte(e), order: make([]uint64, base.steps), place: make([]uint64, base.steps)}
		for i := range p.order {
			p.order[i] = uint64(i)
		}
		if shuffled {
			r.Shuffle(len(p.order), func(i, j int) { p.order[i], p.order[j] = p.order[j], p.order[i] })
		}
		for i, chunk := range p.order {
			p.place[chunk] = uint64(i)
		}
		if all[e] = p; e > 0 {
			all[e-1].follow = p
		}
	}
	return all
}

// optimum is how many hits the best of all policies would have with so many places.
func optimum(all []*chunked, places int) int {
	var uses []int
	for _, p := range all {
		for _, chunk := range p.order {
			uses = append(uses, int(chunk))
		}
	}
	return belady.Hits(uses, places)
}

// The cache finds nearly as much of five epochs in memory as the best of all
// policies would, which knows the future and has no batches on their way.
func TestHits(t *testing.T) {
	for _, shuffled := range []bool{false, true} {
		for _, percent := range []uint64{10, 50, 90} {
			t.Run(fmt.Sprintf("shuffled=%v/%d%%", shuffled, percent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const places = 512
					all := epochs(5, places*100/percent, shuffled)
					k := newCache(t, cache.Config{RAMBytes: places * 32 << 10, Workers: 1})
					opens := 0
					for _, p := range all {
						for step := range p.steps {
							time.Sleep(10 * time.Millisecond)
							open(t, k, p, 0, step).Release()
							opens++
						}
					}
					hits, best := opens-int(k.Stats().Fills), optimum(all, places)
					t.Logf("%d hits of %d, the best is %d: %.4f", hits, opens, best, float64(hits)/float64(best))
					if float64(hits) < 0.99*float64(best) {
						t.Errorf("%d of %d opens found their batch in memory, the best of all policies %d", hits, opens, best)
					}
				})
			})
		}
	}
}

// A disk that has room for half of what memory has not brings what it has room
// for: what is kept there is not always what was read last.
func TestHitsOnDisk(t *testing.T) {
	for _, shuffled := range []bool{false, true} {
		t.Run(fmt.Sprintf("shuffled=%v", shuffled), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const places, onDisk, size = 512, 768, 32 << 10
				all := epochs(8, places+2*onDisk, shuffled)
				k := newCache(t, cache.Config{
					RAMBytes: places * size, Workers: 1, NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: onDisk * size}},
				})
				opens := 0
				for _, p := range all {
					before := k.Stats()
					for step := range p.steps {
						time.Sleep(10 * time.Millisecond)
						open(t, k, p, 0, step).Release()
						opens++
					}
					s := k.Stats()
					t.Logf("epoch %d: fills %d restored %d", p.epoch, s.Fills-before.Fills, s.Restored-before.Restored)
				}
				hits, best := opens-int(k.Stats().Fills), optimum(all, places+onDisk)
				t.Logf("%d hits of %d, the best is %d: %.4f", hits, opens, best, float64(hits)/float64(best))
				if float64(hits) < 0.95*float64(best) {
					t.Errorf("%d of %d opens found their batch in memory or on disk, the best of all policies %d", hits, opens, best)
				}
			})
		})
	}
}

// An epoch that is longer than what a choice of levels looks at is no other case: what was
// kept of it is still there when its readers come to that again.
func TestHitsFarAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places, page = 4096, 4096
		all := epochsOf(&testSeries{id: 9, steps: 70_000, size: page, noise: true, fail: slow(50 * time.Microsecond)}, 2, false)
		k := newCache(t, cache.Config{RAMBytes: places * page, Workers: 1})
		opens, best := 0, places*(len(all)-1) // of each epoch but the first: as many as there are places
		for _, p := range all {
			for step := range p.steps {
				time.Sleep(200 * time.Microsecond)
				open(t, k, p, 0, step).Release()
				opens++
			}
		}
		hits := opens - int(k.Stats().Fills)
		t.Logf("%d hits of %d, the best is %d: %.4f", hits, opens, best, float64(hits)/float64(best))
		if float64(hits) < 0.99*float64(best) {
			t.Errorf("%d of %d opens found their batch in memory, the best of all policies %d", hits, opens, best)
		}
	})
}

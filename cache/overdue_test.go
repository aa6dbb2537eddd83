package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
)

// What was opened at random, twice in short time, and then no more, does not keep its
// place for ever in expectation of a third time: a reader in order has its memory.
func TestOverdueMakesWay(t *testing.T) {
	for _, policy := range []string{"mckp", "interval"} {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const places, random = 64, 24
				k := newCache(t, cache.Config{RAMBytes: places * 256 << 10, Workers: 1, Policy: policy})
				p := &testSeries{id: 1, steps: 96, size: 256 << 10, noise: true, fail: slow(2 * time.Millisecond)}
				for range 3 {
					for step := uint64(random); step > 0; step-- {
						time.Sleep(2 * time.Millisecond)
						open(t, k, p, 1, 3*step).Release()
					}
				}
				fills := uint64(0)
				for range 6 {
					fills = readEpoch(t, k, p, 10*time.Millisecond)
				}
				left := 0
				for step := range p.steps {
					if _, ok := k.Contains(p.Key(1, step)); ok {
						left++
					}
				}
				t.Logf("%d batches that were opened at random are left, an epoch of %d takes %d fills", left, p.steps, fills)
				if least := p.steps - places; left > 2 || fills > least+least/4 {
					t.Errorf("%d batches are left that were opened at random; an epoch of %d batches takes %d fills, and %d have no place", left, p.steps, fills, least)
				}
			})
		})
	}
}

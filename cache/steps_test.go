package cache_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
)

// Ranks that take each step together wait for the last of its batches, so that some of
// a step are worth nothing to them. What memory keeps of such a job are whole steps, but
// for those that are just being read: the ranks' batches of a step are needed at one time,
// so they go one after the other, and what is needed last goes first.
func TestStepsStayWhole(t *testing.T) {
	for _, percent := range []int{30, 60, 85} {
		t.Run(fmt.Sprintf("%d%%", percent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const ranks, steps, size = 4, 400, 48 << 10
				p := &testSeries{id: 3, steps: steps, size: size, noise: true, fail: slow(2 * time.Millisecond)}
				k := newCache(t, cache.Config{RAMBytes: int64(ranks*steps*percent/100) * size, Workers: 2})
				most := 0
				for epoch := range 6 {
					for step := range uint64(steps) {
						time.Sleep(10 * time.Millisecond)
						var all sync.WaitGroup
						for rank := range uint64(ranks) {
							all.Go(func() { open(t, k, p, rank, step).Release() })
						}
						all.Wait()
						if synctest.Wait(); epoch > 1 {
							most = max(most, partial(k, p, ranks))
						}
					}
				}
				t.Logf("%d steps were there in part at most", most)
				if most > 4*ranks { // of which all ranks read one, and some are made or go at that moment
					t.Errorf("%d of %d steps were in memory in part", most, steps)
				}
			})
		})
	}
}

// partial counts the steps of which some batches are in memory and some are not.
func partial(k *cache.Cache, p *testSeries, ranks uint64) (n int) {
	for step := range p.steps {
		there := uint64(0)
		for rank := range ranks {
			if _, ok := k.Contains(p, rank, step); ok {
				there++
			}
		}
		if there > 0 && there < ranks {
			n++
		}
	}
	return n
}

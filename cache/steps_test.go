package cache_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
)

// Ranks that take each step together wait for the last of its batches, so that some of
// a step are worth nothing to them. What memory keeps of such a job are whole steps, but
// for those that are just being read: the ranks' batches of a step are needed at one time,
// so they go one after the other, and what is needed last goes first. So it is with another
// such job beside it, of another pace.
func TestStepsStayWhole(t *testing.T) {
	for _, c := range []struct{ jobs, percent int }{{1, 30}, {1, 60}, {1, 85}, {2, 30}} {
		t.Run(fmt.Sprintf("%d of them, %d%%", c.jobs, c.percent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testStepsStayWhole(t, c.jobs, c.percent) })
		})
	}
}

func testStepsStayWhole(t *testing.T, jobs, percent int) {
	const ranks, steps, size = 4, 400, 48 << 10
	k := newCache(t, cache.Config{RAMBytes: int64(jobs*ranks*steps*percent/100) * size, Workers: 2})
	var series []*testSeries
	for job := range jobs {
		series = append(series, &testSeries{id: byte(3 + job), steps: steps, size: size, noise: true, fail: slow(2 * time.Millisecond)})
	}
	step := func(p *testSeries, n uint64) {
		var all sync.WaitGroup
		for rank := range uint64(ranks) {
			all.Go(func() { open(t, k, p, rank, n%steps).Release() })
		}
		all.Wait()
	}
	over := make(chan struct{})
	var others sync.WaitGroup
	for job, p := range series[1:] {
		others.Go(func() {
			for n := uint64(0); ; n++ {
				select {
				case <-over:
					return
				case <-time.After(time.Duration(17+job) * time.Millisecond):
					step(p, n)
				}
			}
		})
	}
	most := make([]int, jobs)
	for n := range uint64(6 * steps) {
		time.Sleep(10 * time.Millisecond)
		step(series[0], n)
		if synctest.Wait(); n >= 2*steps {
			for job, p := range series {
				most[job] = max(most[job], partial(k, p, ranks))
			}
		}
	}
	close(over)
	others.Wait()
	t.Logf("so many steps were there in part at most: %v", most)
	if slices.Max(most) > 4*ranks { // of which all ranks read one, and some are made or go at that moment
		t.Errorf("of %d steps of each job so many were in memory in part: %v", steps, most)
	}
}

// partial counts the steps of which some batches are in memory and some are not.
func partial(k *cache.Cache, p *testSeries, ranks uint64) (n int) {
	for step := range p.steps {
		there := uint64(0)
		for rank := range ranks {
			if _, ok := k.Contains(p.Key(rank, step)); ok {
				there++
			}
		}
		if there > 0 && there < ranks {
			n++
		}
	}
	return n
}

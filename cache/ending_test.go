package cache_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
)

// A countedPlan counts how often it is asked for a size, which begins each try
// to fill.
type countedPlan struct {
	*testPlan
	tries atomic.Int32
}

func (p *countedPlan) Size(rank, step uint64) int64 {
	if p.tries.Add(1) > 100 {
		return 0 // or it never ends
	}
	return p.testPlan.Size(rank, step)
}

// Where there is no room for what comes after the epoch's end, workers leave it
// at that until the rank has moved.
func TestNoRoomBeyondTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &countedPlan{testPlan: &testPlan{id: 2, steps: 4, size: 4 << 20, once: true, last: true}}
		p := &endingPlan{&testPlan{id: 1, steps: 4, size: 4 << 20, once: true}, next}
		k := newCache(t, cache.Config{RAMBytes: 16 << 20})
		for step := range uint64(3) { // and the fourth is made ready
			defer open(t, k, p, 0, step).Release()
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := next.tries.Load(); n == 0 || n > 10 {
			t.Errorf("%d tries to fill what there is no room for", n)
		}
	})
}

// An endingPlan is followed by another.
type endingPlan struct {
	*testPlan
	then cache.Plan
}

func (p *endingPlan) Next() cache.Plan { return p.then }

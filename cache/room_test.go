package cache_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/meta"
)

// An open that comes just when another has given up waiting for memory waits for it too,
// and does not end with the error of the other.
func TestComesAsAnotherLeaves(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 16 << 20, Workers: 2})
	large, small := &testSeries{id: 1, steps: 2, size: 12 << 20, last: true}, &testSeries{id: 2, steps: 1, size: 100, last: true}
	defer open(t, k, large, 0, 0).Release()
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	gone, leave := context.WithCancel(ctx)
	leave()
	var tasks sync.WaitGroup
	for range 2 {
		tasks.Go(func() { // what is given back has the worker look for room again
			for ctx.Err() == nil {
				if s, err := k.Open(ctx, nil, as(small), 0, 0, small.Key(0, 0)); err == nil {
					s.Release()
				}
			}
		})
		tasks.Go(func() {
			for ctx.Err() == nil {
				if _, err := k.Open(gone, nil, as(large), 1, 1, large.Key(1, 1)); errors.Is(err, meta.ErrNoSpace) {
					t.Errorf("an open that left at once: %v", err)
					stop()
				}
			}
		})
	}
	tasks.Wait()
}

// Opens that wait for memory have it in the order in which they came, however often
// others close a batch and open the next: eight ranks for four places take turns.
func TestRoomByArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, places, ranks = 4 << 20, 4, 8
		k := newCache(t, cache.Config{RAMBytes: places * size, Workers: 2 * ranks, OpenTimeout: time.Hour})
		p := &testSeries{id: 1, steps: 30, size: size, last: true, fail: slow(3 * time.Millisecond)}
		var mu sync.Mutex
		type wait struct{ from, to time.Time }
		var waits []wait
		var tasks sync.WaitGroup
		for rank := range uint64(ranks) {
			tasks.Go(func() {
				for step := range p.steps {
					from := time.Now()
					s, err := k.Open(t.Context(), nil, as(p), rank, step, p.Key(rank, step))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					waits = append(waits, wait{from, time.Now()})
					mu.Unlock()
					time.Sleep(time.Second + time.Duration(rank)*17*time.Millisecond)
					s.Release()
				}
			})
		}
		tasks.Wait()
		worst := 0
		for _, w := range waits {
			overtakes := 0
			for _, o := range waits {
				if o.from.After(w.from) && o.to.Before(w.to) {
					overtakes++
				}
			}
			worst = max(worst, overtakes)
		}
		t.Logf("the open that waited longest was overtaken %d times", worst)
		if worst > 1 {
			t.Errorf("an open was overtaken by %d that came later", worst)
		}
	})
}

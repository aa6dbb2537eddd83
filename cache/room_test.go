package cache_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"rankfs/cache"
	"rankfs/meta"
)

// Who comes just when another has given up waiting for memory waits for it too,
// and is not told of the other's failure.
func TestComesAsAnotherLeaves(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 16 << 20, Workers: 2})
	large, small := &testPlan{id: 1, steps: 2, size: 12 << 20, last: true}, &testPlan{id: 2, steps: 1, size: 100, last: true}
	defer open(t, k, large, 0, 0).Release()
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	gone, leave := context.WithCancel(ctx)
	leave()
	var tasks sync.WaitGroup
	for range 2 {
		tasks.Go(func() { // what is given back has the worker look for room again
			for ctx.Err() == nil {
				if s, err := k.Open(ctx, small, 0, 0); err == nil {
					s.Release()
				}
			}
		})
		tasks.Go(func() {
			for ctx.Err() == nil {
				if _, err := k.Open(gone, large, 1, 1); errors.Is(err, meta.ErrNoSpace) {
					t.Errorf("an open that left at once: %v", err)
					stop()
				}
			}
		})
	}
	tasks.Wait()
}

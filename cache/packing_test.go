package cache_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
)

// Data that fit memory packed, and not as they are, leave their source once: what
// memory gives up is packed from the first moment on, before any of it is lost.
func TestDataThatFitPacked(t *testing.T) {
	for _, tick := range []time.Duration{time.Millisecond, 5 * time.Millisecond} {
		t.Run(fmt.Sprint(tick), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const ranks, epochs = 2, 6
				p := &testSeries{id: 1, steps: 256, size: 128 << 10, quarter: true, fail: slow(1300 * time.Microsecond)}
				k := newCache(t, cache.Config{RAMBytes: 20 << 20, Workers: 2})
				for range epochs {
					var all sync.WaitGroup
					for rank := range uint64(ranks) {
						all.Go(func() {
							for step := range p.steps {
								s, err := k.Open(t.Context(), nil, as(p), rank, step, p.Key(rank, step))
								if err != nil {
									t.Error(err)
									return
								}
								time.Sleep(tick)
								s.Release()
							}
						})
					}
					all.Wait()
				}
				if n := k.Stats(); n.Fills > ranks*p.steps*21/20 || n.Unpacked < ranks*p.steps {
					t.Errorf("%d fills of %d batches in %d epochs, %d were unpacked", n.Fills, ranks*p.steps, epochs, n.Unpacked)
				}
			})
		})
	}
}

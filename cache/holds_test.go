package cache_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cache"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// The bytes of a slab that a process has mapped stay what they were, whatever comes
// and goes after its release, and its memory counts until it is unmapped.
func TestMappedAfterRelease(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 16 << 20})
	p := &testSeries{steps: 1 << 16, size: 1 << 20, last: true} // else what was read first is kept for the next epoch
	s := open(t, k, p, 0, 0)
	m := mapped(t, s)
	s.Release()
	for step := uint64(1); step < 200 || step < p.steps && k.Stats().RAM.Dying == 0; step++ { // what is copied just then goes later
		s := open(t, k, p, 0, step)
		check(t, s, p, 0, step)
		s.Release()
		if u := k.Stats().RAM.Used; u > 16<<20 {
			t.Fatalf("step %d: %d bytes used, budget is %d", step, u, 16<<20)
		}
	}
	if d := k.Stats().RAM.Dying; d != 1<<20 {
		t.Errorf("%d bytes dying, want the one slab that is mapped", d)
	}
	if !p.has(m, 0, 0, 0) {
		t.Error("the mapping changed")
	}
	unix.Munmap(m)
	if k.Stats().Recycled == 0 {
		t.Error("no slab was used again")
	}
}

// Ranks hold all memory: the next open waits, and gets its slab when one of them
// lets go, or an error that says why when none does. What they hold is told once,
// after a moment.
func TestAllHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, told := time.Now(), 0
		p := &testSeries{steps: 2, size: 4 << 20}
		k := newCache(t, cache.Config{RAMBytes: 16 << 20, Shortage: func(c *cache.Shortage) {
			if told++; told == 1 && (c.Series.Keys != p || time.Since(began) > 2*time.Second || *c != cache.Shortage{Series: c.Series, Batches: 4, Held: 16 << 20, Size: 4 << 20, Asked: 4 << 20, Memory: 16 << 20}) {
				t.Errorf("after %v: %+v", time.Since(began), *c)
			}
		}})
		var held []*cache.Slab
		for rank := range uint64(4) {
			held = append(held, open(t, k, p, rank, 0))
		}
		_, err := k.Open(t.Context(), nil, as(p), 50, 1, p.Key(50, 1))
		if c := k.Shortage(); c == nil || c.Batches != 4 {
			t.Errorf("an open waits for %+v", c)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, meta.ErrNoSpace) {
			t.Errorf("open with all held: %v, want a timeout for lack of room", err)
		}
		if want := "batch not ready after 2m: ranks hold or map "; !strings.HasPrefix(err.Error(), want) {
			t.Errorf("it says %q, want %q...", err, want)
		}
		if told != 2 {
			t.Errorf("told %d times in two minutes", told)
		}
		held[0].Release()
		s := open(t, k, p, 60, 0)
		check(t, s, p, 60, 0)
		s.Release()
		for _, s := range held[1:] {
			s.Release()
		}
	})
}

// Of many opens that wait until the end each says why: those whose fills wait for memory,
// that of an open that came later, and those that wait for a worker.
func TestAllOfManySayWhyTheyWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &testSeries{steps: 2, size: 4 << 20}
		k := newCache(t, cache.Config{RAMBytes: 16 << 20, Workers: 2})
		for rank := range uint64(4) {
			defer open(t, k, p, rank, 0).Release()
		}
		errs := make(chan error)
		for rank := range uint64(6) {
			go func() {
				_, err := k.Open(t.Context(), nil, as(p), 50+rank, 1, p.Key(50+rank, 1))
				errs <- err
			}()
			if rank < 2 {
				time.Sleep(10 * time.Millisecond) // the others come at one moment
			}
		}
		for range 6 {
			err := <-errs
			var short *cache.Shortage
			if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &short) || short.Batches != 4 || short.Series.Keys != p {
				t.Errorf("an open ends with %v", err)
			}
		}
	})
}

// An open of a batch for which there is no room at all is refused at once, and that is
// told for a minute.
func TestBatchLargerThanAllRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCache(t, cache.Config{RAMBytes: 16 << 20, Shortage: func(c *cache.Shortage) { t.Errorf("told that an open waits: %v", c) }})
		small, large := &testSeries{id: 1, steps: 10, size: 4 << 20}, &testSeries{id: 2, steps: 10, size: 16<<20 + 1}
		open(t, k, small, 0, 0).Release()
		if c := k.Shortage(); c != nil {
			t.Errorf("a batch that fits: %v", c)
		}
		began := time.Now()
		series := as(large)
		_, err := k.Open(t.Context(), nil, series, 0, 0, large.Key(0, 0))
		want := cache.Shortage{Series: series, Size: 16<<20 + 1, Memory: 16 << 20, TooLarge: true}
		var got *cache.Shortage
		if !errors.As(err, &got) || *got != want || !errors.Is(err, meta.ErrNoSpace) || time.Since(began) > 0 {
			t.Errorf("open: %v after %v: %+v", err, time.Since(began), got)
		}
		time.Sleep(59 * time.Second)
		if c := k.Shortage(); c == nil || *c != want {
			t.Errorf("59 seconds later it is %+v", c)
		}
		time.Sleep(2 * time.Second)
		if c := k.Shortage(); c != nil {
			t.Errorf("after a minute it is %v", c)
		}
	})
}

// Twice as many ranks as memory has room for, that compute with what they have and
// close it, be it seconds later: they get on. So do those that open the next
// batch meanwhile in a thread beside.
func TestAReadingCrowd(t *testing.T) {
	for _, row := range []struct {
		name    string
		compute time.Duration
		beside  bool
	}{
		{"moments", 300 * time.Millisecond, false},
		{"seconds", 3 * time.Second, false},
		{"many seconds", 8 * time.Second, false}, // four at a time of eight: a wait may be several rounds
		{"another thread opens", 8 * time.Second, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ranks := uint64(8)
				if row.beside { // else two wait for each that computes
					ranks = 4
				}
				k := newCache(t, cache.Config{RAMBytes: 16 << 20, Holds: func(int32, uint64, uint64) bool { return !row.beside }})
				p, stalls := &testSeries{steps: 10, size: 4 << 20}, stall.NewTable(time.Now)
				var all sync.WaitGroup
				for rank := range ranks {
					opened := func(step uint64) *cache.Slab {
						account := stalls.Open("job", rank)
						account.Thread = 100 + int32(rank)
						s, err := k.Open(t.Context(), &account, as(p), rank, step, p.Key(rank, step))
						if err != nil {
							t.Errorf("rank %d step %d: %v", rank, step, err)
							return nil
						}
						return s
					}
					all.Go(func() {
						s := opened(0)
						for step := uint64(1); s != nil && step < p.steps; step++ {
							next := make(chan *cache.Slab, 1)
							if row.beside {
								go func() { next <- opened(step) }()
							}
							time.Sleep(row.compute)
							s.Release()
							if !row.beside {
								next <- opened(step)
							}
							s = <-next
						}
						if s != nil {
							s.Release()
						}
					})
				}
				all.Wait()
			})
		})
	}
}

// Ranks of one thread that open the next batch while they have the last one open,
// and together all of memory: one is refused as soon as all wait, and when it has
// closed what it has the others get on.
func TestHoldersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCache(t, cache.Config{RAMBytes: 16 << 20, Holds: func(thread int32, rank, step uint64) bool {
			return thread == 100+int32(rank) && step == 0
		}})
		p, stalls := &testSeries{steps: 2, size: 4 << 20}, stall.NewTable(time.Now)
		var ranks, opened sync.WaitGroup
		var computed, refused atomic.Int32
		opened.Add(4)
		for rank := range uint64(4) {
			ranks.Go(func() {
				account := stalls.Open("job", rank)
				account.Thread = 100 + int32(rank)
				s, err := k.Open(t.Context(), &account, as(p), rank, 0, p.Key(rank, 0))
				opened.Done()
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Release()
				opened.Wait()                                      // or the next of one takes the place of another's first
				time.Sleep(time.Duration(rank) * 20 * time.Second) // until the last has computed, nothing is certain
				computed.Add(1)
				began := time.Now()
				next, err := k.Open(t.Context(), &account, as(p), rank, 1, p.Key(rank, 1))
				var crowd *cache.Shortage
				switch {
				case err == nil:
					next.Release()
				case !errors.As(err, &crowd) || !crowd.Stuck || !errors.Is(err, meta.ErrNoSpace):
					t.Errorf("rank %d: %v, want it refused for lack of room", rank, err)
				default:
					refused.Add(1)
					if computed.Load() < 4 || time.Since(began) > 65*time.Second {
						t.Errorf("rank %d was refused after %v, when %d waited", rank, time.Since(began), computed.Load())
					}
				}
			})
		}
		ranks.Wait()
		if refused.Load() == 0 {
			t.Error("none was refused")
		}
	})
}

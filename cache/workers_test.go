package cache_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
)

// A crew is the ranks of a job: each opens a batch, does something with it for a tick,
// and goes on.
type crew struct {
	series series
	ranks  uint64
	steps  uint64
	tick   time.Duration
	random bool
}

// A piecewise series is made of chunks, so many batches of each.
type piecewise struct {
	*testSeries
	chunks  *testSeries
	inOrder bool
}

func (p *piecewise) Fill(ctx context.Context, rank, step uint64, dst []byte) iter.Seq2[cache.Input, error] {
	per := uint64(p.chunks.size / p.size)
	return copies(ctx, p.chunks, p.inOrder, []uint64{(rank*p.steps + step) / per}, func(_ uint64, input io.ReaderAt) error {
		if input == nil {
			return fmt.Errorf("no room for a chunk")
		}
		_, err := input.ReadAt(dst, 0)
		return err
	})
}

// waits are what the opens of each job waited, on the mean.
func waits(t *testing.T, workers int, jobs []crew, d time.Duration) (mean []time.Duration) {
	mean = make([]time.Duration, len(jobs))
	synctest.Test(t, func(t *testing.T) {
		k := newCache(t, cache.Config{Workers: workers, RAMBytes: 256 << 20})
		var tasks sync.WaitGroup
		start := time.Now()
		for n, j := range jobs {
			var mu sync.Mutex
			opens, waited := 0, time.Duration(0)
			for rank := range j.ranks {
				r := rand.New(rand.NewPCG(uint64(n), rank))
				tasks.Go(func() {
					for i := uint64(0); time.Since(start) < d; i++ {
						time.Sleep(j.tick*7/8 + time.Duration(r.Int64N(int64(j.tick)/4)))
						step := i % j.steps
						if j.random {
							step = r.Uint64N(j.steps)
						}
						now := time.Now()
						s, err := k.Open(t.Context(), nil, as(j.series), rank, step, j.series.Key(rank, step))
						if err != nil {
							t.Error(err)
							return
						}
						s.Release()
						if now.Sub(start) > d/4 {
							mu.Lock()
							opens, waited = opens+1, waited+time.Since(now)
							mu.Unlock()
						}
					}
				})
			}
			defer func() { mean[n] = waited / time.Duration(max(opens, 1)) }()
		}
		tasks.Wait()
		awaitQuiet(k)
	})
	return mean
}

// A rank waits no longer beside a job of eight, whose fills are slow, than it would with
// half of the workers for itself: whether that job opens at random or has all workers make
// ready what it comes to, and whether batches are filled whole or copied from chunks.
func TestWorkersAreSharedByJobs(t *testing.T) {
	const many, size = 1 << 12, 4 << 10
	fills := func(id byte, takes time.Duration) *testSeries {
		return &testSeries{id: id, steps: many, size: size, noise: true, fail: slow(takes)}
	}
	chunks := func(id byte, takes time.Duration) *testSeries {
		return &testSeries{id: id, steps: 2 * many, size: 4 * size, noise: true, share: true, fail: slow(takes)}
	}
	large, quick := 200*time.Millisecond, 10*time.Millisecond
	counts := []int{2, 8}
	if testing.Short() {
		counts = counts[:1]
	}
	for _, row := range []struct {
		name string
		job  func() [2]crew
	}{
		{"both at random", func() [2]crew {
			return [2]crew{{fills(1, large), 8, many, 5 * time.Millisecond, true}, {fills(2, quick), 1, many, 20 * time.Millisecond, true}}
		}},
		{"at random beside one in order", func() [2]crew {
			return [2]crew{{fills(1, large), 8, many, 5 * time.Millisecond, false}, {fills(2, quick), 1, many, 20 * time.Millisecond, true}}
		}},
		{"both in order", func() [2]crew {
			return [2]crew{{fills(1, large), 8, many, 5 * time.Millisecond, false}, {fills(2, quick), 1, many, 20 * time.Millisecond, false}}
		}},
		{"of chunks", func() [2]crew {
			a := &piecewise{fills(1, 0), chunks(3, large), true}
			b := &piecewise{fills(2, 0), chunks(4, quick), true}
			return [2]crew{{a, 8, many, 5 * time.Millisecond, false}, {b, 1, many, 20 * time.Millisecond, false}}
		}},
	} {
		for _, workers := range counts {
			t.Run(fmt.Sprintf("%s, %d workers", row.name, workers), func(t *testing.T) {
				const span = 4 * time.Second
				both := row.job()
				beside := waits(t, workers, both[:], span)[1]
				fresh := row.job()
				alone := waits(t, workers/2, fresh[1:], span)[0]
				t.Logf("it waits %v, alone %v", beside, alone)
				if beside > alone*105/100+100*time.Microsecond {
					t.Errorf("it waits %v, with half of the workers for itself %v", beside, alone)
				}
			})
		}
	}
}

// What two jobs wait for is filled when it is the turn of one of them: that the other has
// many opens that wait, and came first, does not hold it up.
func TestABatchOfTwoJobsIsFilledForEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, takes = 8, time.Second
		base := &testSeries{id: 1, steps: many, size: 4 << 10, last: true, fail: slow(takes)}
		one, other := epochsOf(base, 1, false)[0], epochsOf(base, 1, false)[0]
		other.epoch = 1
		k := newCache(t, cache.Config{Workers: 1})
		var tasks sync.WaitGroup
		for step := range uint64(many) {
			tasks.Go(func() { open(t, k, one, 0, step).Release() })
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		open(t, k, other, 0, many-1).Release()
		if waited := time.Since(start); waited > takes {
			t.Errorf("it was filled %v after it was opened, and takes %v", waited, takes)
		}
		tasks.Wait()
		for step := range uint64(many) {
			if n := base.filled(0, step); n != 1 {
				t.Errorf("batch %d was filled %d times", step, n)
			}
		}
	})
}

// A parted series is one of a job that reads many.
type parted struct {
	*testSeries
	job cache.Job
}

func (p parted) traits() cache.Series {
	s := p.testSeries.traits()
	s.Job = p.job
	return s
}

// A job that opens many series at once has no more of the workers than one that opens one, and
// those that wait always have as much as they weigh.
func TestAJobOfManySeries(t *testing.T) {
	for _, row := range []struct {
		name   string
		weight [2]float64
		opens  [2]int // series of each job, all at once
		second int    // when so many of the second have been opened so many of the first have
		first  [2]int
	}{
		{"one beside many", [2]float64{1, 1}, [2]int{60, 1}, 1, [2]int{0, 7}},
		{"many beside many", [2]float64{1, 1}, [2]int{60, 60}, 20, [2]int{12, 28}},
		{"many beside many of less weight", [2]float64{1, 0.25}, [2]int{160, 60}, 25, [2]int{55, 145}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newCache(t, cache.Config{Workers: 2, RAMBytes: 256 << 20})
				var tasks sync.WaitGroup
				var mu sync.Mutex
				var opened [2]int
				then := -1
				id := byte(0)
				for job, n := range row.opens {
					for range n {
						p := parted{&testSeries{id: id, steps: 1, size: 4 << 10, fail: slow(100 * time.Millisecond)}, cache.Job{ID: [16]byte{255, byte(job)}, Weight: row.weight[job]}}
						id++
						tasks.Go(func() {
							s, err := k.Open(t.Context(), nil, as(p), 0, 0, p.Key(0, 0))
							if err != nil {
								t.Error(err)
								return
							}
							s.Release()
							mu.Lock()
							defer mu.Unlock()
							if opened[job]++; opened[1] == row.second && then < 0 {
								then = opened[0]
							}
						})
					}
					time.Sleep(time.Millisecond) // the first job comes first
				}
				tasks.Wait()
				awaitQuiet(k)
				if then < row.first[0] || then > row.first[1] {
					t.Errorf("when %d of the second job had been opened %d of the first had, want %d to %d", row.second, then, row.first[0], row.first[1])
				}
			})
		})
	}
}

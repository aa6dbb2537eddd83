package cache_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
)

var lots = flag.Int("lots", 12, "of jobs that share memory and source")

// A sharer is a job that opens a batch, does something with it for a tick, and goes on.
type sharer struct {
	steps  int
	tick   time.Duration
	random bool
}

// A lot is jobs that share memory, and a source that makes so many batches at a time.
type lot struct {
	jobs   []sharer
	places int // in memory, for each job
	each   int // fills at a time, for each job
	took   time.Duration
}

// waited is what the opens of each job waited, on the mean, in seconds.
func (l lot) waited(t *testing.T, d time.Duration) (mean []float64) {
	mean = make([]float64, len(l.jobs))
	synctest.Test(t, func(t *testing.T) {
		tokens := make(chan struct{}, l.each*len(l.jobs))
		source := func(uint64, uint64) error {
			tokens <- struct{}{}
			time.Sleep(l.took)
			<-tokens
			return nil
		}
		k := newCache(t, cache.Config{RAMBytes: int64(l.places*len(l.jobs)) * 64 << 10, Workers: l.each * len(l.jobs)})
		var tasks sync.WaitGroup
		start := time.Now()
		for n, j := range l.jobs {
			p := &testSeries{id: byte(n + 1), steps: uint64(j.steps), size: 64 << 10, noise: true, fail: source}
			r := rand.New(rand.NewPCG(7, uint64(n)))
			tasks.Go(func() {
				opens, waits := 0, time.Duration(0)
				for i := uint64(0); time.Since(start) < d && !t.Failed(); i++ {
					time.Sleep(j.tick*7/8 + time.Duration(r.Int64N(int64(j.tick)/4)))
					step := i % p.steps
					if j.random {
						step = r.Uint64N(p.steps)
					}
					now := time.Now()
					s, err := k.Open(t.Context(), nil, as(p), 0, step, p.Key(0, step))
					if err != nil {
						t.Error(err)
						return
					}
					if now.Sub(start) > d/4 {
						opens, waits = opens+1, waits+time.Since(now)
					}
					s.Release()
				}
				mean[n] = waits.Seconds() / float64(max(opens, 1))
			})
		}
		tasks.Wait()
		awaitQuiet(k)
	})
	return mean
}

// alone is what a job waits with its share for itself.
func (l lot) alone(t *testing.T, n int, d time.Duration) float64 {
	return lot{[]sharer{l.jobs[n]}, l.places, l.each, l.took}.waited(t, d)[0]
}

// used is the share of the source's time that the jobs need for what they lack.
func (l lot) used() (share float64) {
	for _, j := range l.jobs {
		share += max(0, 1-float64(l.places)/float64(j.steps)) * l.took.Seconds() / j.tick.Seconds()
	}
	return share / float64(l.each*len(l.jobs))
}

// Jobs that share memory and a source wait no more than each would with its part of
// both for itself, whether they read in order or at random; and all together less.
// A fill that was begun for another job goes on: an open that could not be foreseen waits
// besides until one of the fills is done that the source is busy with.
func TestNoJobWaitsMoreThanAlone(t *testing.T) {
	const span = 40 * time.Second
	more, longer, all, sum, sumAlone := 0, 0, 0, 0.0, 0.0
	for seed := range *lots {
		r := rand.New(rand.NewPCG(3, uint64(seed)))
		l := lot{places: 256, each: 1 + r.IntN(2), took: time.Duration(2+r.IntN(20)) * time.Millisecond}
		n := 2 + r.IntN(3)
		for range n {
			l.jobs = append(l.jobs, sharer{
				steps:  l.places * (20 + r.IntN(280)) / 100,
				tick:   time.Duration(2+r.IntN(60)) * time.Millisecond,
				random: r.IntN(3) == 0,
			})
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			mean := l.waited(t, span)
			for i, j := range l.jobs {
				own := l.alone(t, i, span)
				all++
				sum, sumAlone = sum+mean[i]/(mean[i]+j.tick.Seconds()), sumAlone+own/(own+j.tick.Seconds())
				t.Logf("%d places, source %d of %v, used %.2f: %+v waits %.2f ms, alone %.2f", l.places, l.each*n, l.took, l.used(), j, mean[i]*1e3, own*1e3)
				if mean[i] > 1.05*own {
					longer++
				}
				busy := own * min(1, l.used()) / float64(l.each*n)
				if mean[i] > 1.05*own+0.025*j.tick.Seconds()+busy {
					t.Errorf("it waits %.2f ms, which is more than alone", mean[i]*1e3)
					more++
				}
			}
		})
	}
	t.Logf("%d of %d jobs wait more than alone, %d by more than 5 %%; shares of time that all wait %.2f, alone %.2f", more, all, longer, sum, sumAlone)
	if sum > sumAlone/2 {
		t.Error("all together they wait more than half as much as alone")
	}
}

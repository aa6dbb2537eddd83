package cache_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/cache/policy"
	"rankfs/cache/simulate"
)

// aheadOf is how many batches from a step on are there or being made already.
func aheadOf(p *testSeries, from uint64) (n int) {
	for step := from; step < p.steps && p.filled(0, step) > 0; step++ {
		n++
	}
	return n
}

// From a source that takes half a second for each batch, and any number at a time,
// as many are made ready as a reader of 100 steps a second needs, which then does not
// wait; from a quick one, no more than a few are. The simulator predicts as much.
func TestAheadByLatencyAndPace(t *testing.T) {
	for _, c := range []struct {
		name          string
		latency       time.Duration
		least, most   int
		learns, steps uint64
	}{
		{"far", 500 * time.Millisecond, 17, 64, 2000, 2500},
		{"near", time.Millisecond, 2, 4, 500, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newCache(t, cache.Config{RAMBytes: 64 << 20, Workers: 2})
				p := &testSeries{id: 1, steps: c.steps + 200, size: 4096, once: true, last: true, fail: slow(c.latency)}
				low, high, waited, began := 1<<30, 0, uint64(0), time.Now()
				for step := range c.steps {
					if step == c.learns {
						waited = k.Stats().OpensWaited
					}
					s := open(t, k, p, 0, step)
					time.Sleep(10 * time.Millisecond)
					s.Release()
					if n := aheadOf(p, step+1); step >= c.learns {
						low, high = min(low, n), max(high, n)
					}
				}
				waited = k.Stats().OpensWaited - waited
				real, predicted := time.Since(began).Seconds(), predict(t, p, c.steps, c.latency)
				t.Logf("%.2f s, simulated %.2f", real, predicted)
				if math.Abs(real-predicted) > 0.1*predicted {
					t.Errorf("it took %.2f s, simulated %.2f", real, predicted)
				}
				t.Logf("%d to %d batches made ahead, %d of %d opens waited", low, high, waited, c.steps-c.learns)
				// Now and then fewer fills at a time are tried, which has some wait.
				if waited > (c.steps-c.learns)/4 || low < c.least || high > c.most {
					t.Errorf("%d to %d batches made ahead, want %d to %d; %d of %d opens waited", low, high, c.least, c.most, waited, c.steps-c.learns)
				}
			})
		})
	}
}

// predict is how many seconds the simulator gives the same reader.
func predict(t *testing.T, p *testSeries, steps uint64, latency time.Duration) float64 {
	t.Helper()
	s := simulate.Scenario{
		Nodes: 1, Ranks: 1, Epochs: 1, Step: 0.01, Partitions: int(steps), Once: true,
		Bytes: []int64{p.size}, Memory: 64 << 20, Costs: simulate.Costs{Latency: latency.Seconds()},
	}
	o, err := simulate.Run(t.Context(), s, func() policy.Policy {
		p, err := policy.New("mckp")
		if err != nil {
			t.Fatal(err)
		}
		return p
	})
	if err != nil {
		t.Fatal(err)
	}
	return o.Last().Seconds
}

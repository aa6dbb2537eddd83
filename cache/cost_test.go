package cache

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Latency and rate are told apart by fills of different sizes, whatever is between
// them; of one size alone no rate follows unless the fills are large, and what others
// of that size take does.
func TestCost(t *testing.T) {
	const latency, rate = 3 * time.Millisecond, 200 << 20
	for name, c := range map[string]struct {
		sizes   []int64
		latency time.Duration
		rate    float64
	}{
		"small and large":  {[]int64{4 << 10, 64 << 20}, latency, rate},
		"mostly small":     {[]int64{4 << 10, 4 << 10, 4 << 10, 4 << 10, 4 << 10, 4 << 10, 1 << 20}, latency, rate},
		"all large":        {[]int64{16 << 20, 64 << 20}, latency, rate},
		"small of one":     {[]int64{4 << 10}, latency, 0},
		"large of one":     {[]int64{64 << 20}, 0, rate},
		"nothing at all":   {nil, 0, 0},
		"nearly one, last": {[]int64{64 << 20, 64 << 20, 64 << 20, 63 << 20}, 0, rate},
	} {
		t.Run(name, func(t *testing.T) {
			var fills cost
			r := rand.New(rand.NewPCG(1, 2))
			takes := func(bytes int64) float64 { return latency.Seconds() + float64(bytes)/rate }
			for i := range 200 * len(c.sizes) {
				bytes := c.sizes[i%len(c.sizes)]
				fills.add(float64(bytes), time.Duration(takes(bytes)*(0.98+0.04*r.Float64())*float64(time.Second)))
			}
			got := fills.parts()
			if far := (got.Latency - c.latency).Abs(); far > max(c.latency/5, time.Millisecond) || math.Abs(got.Rate-c.rate) > 0.05*rate {
				t.Errorf("%v and %.0f bytes a second, want %v and %.0f", got.Latency, got.Rate, c.latency, c.rate)
			}
			for _, bytes := range c.sizes {
				if took := fills.duration(float64(bytes)).Seconds(); math.Abs(took-takes(bytes)) > 0.1*takes(bytes) {
					t.Errorf("%d bytes take %.4f s, want %.4f", bytes, took, takes(bytes))
				}
			}
		})
	}
}

// A source that changes is known by its latest fills.
func TestCostOfLate(t *testing.T) {
	var fills cost
	for range 100 {
		fills.add(1<<20, time.Second)
	}
	for range 200 {
		fills.add(1<<20, time.Millisecond)
	}
	if took := fills.duration(1 << 20); took > 5*time.Millisecond {
		t.Errorf("a fill takes %v, the last 200 took 1 ms", took)
	}
}

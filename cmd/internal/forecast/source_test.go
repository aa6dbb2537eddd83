package forecast

import (
	"math"
	"testing"

	"rankfs/cmd/internal/control"
)

// A fetch takes as long in a simulation as it did when it was measured, and larger ones
// do not take the latency of small ones for each of their bytes.
func TestFetchesTakeWhatWasMeasured(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		cost      control.Cost
		bandwidth int64
		bytes     float64 // of a fetch, which takes
		seconds   float64
	}{
		"small alone":             {cost: control.Cost{Latency: 1e-3, Bytes: 4 << 10}, bytes: 4 << 10, seconds: 1e-3},
		"larger than any yet":     {cost: control.Cost{Latency: 1e-3, Bytes: 4 << 10}, bytes: 64 * mib, seconds: 1e-3 + 64*mib/float64(assumedSource)},
		"both are known":          {cost: control.Cost{Latency: 1e-3, Rate: 100 * mib, Bytes: mib}, bytes: 64 * mib, seconds: 1e-3 + 0.64},
		"large alone":             {cost: control.Cost{Rate: 100 * mib, Bytes: 64 * mib}, bytes: 64 * mib, seconds: 0.64},
		"nothing was read":        {bytes: 64 * mib, seconds: 64 * mib / float64(assumedSource)},
		"another source, by hand": {cost: control.Cost{Latency: 1e-3, Rate: 100 * mib, Bytes: mib}, bandwidth: 32 * mib, bytes: 64 * mib, seconds: 2},
	} {
		t.Run(name, func(t *testing.T) {
			j := Job{nodes: 1, workers: 2, bandwidth: c.bandwidth}
			j.source(control.Status{Counters: control.Counters{FillCost: c.cost}})
			if took := j.latency + c.bytes/float64(j.stream); math.Abs(took-c.seconds) > 1e-5 {
				t.Errorf("it takes %.6f s, want %.6f", took, c.seconds)
			}
		})
	}
}

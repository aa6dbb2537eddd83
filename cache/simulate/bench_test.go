package simulate_test

import (
	"testing"

	"rankfs/cache/policy"
	"rankfs/cache/simulate"
	"rankfs/meta"
)

func BenchmarkMillionPartitions(b *testing.B) {
	for _, kind := range []string{"none", "full"} {
		for _, name := range []string{"mckp", "interval", "dp25", "lru"} {
			b.Run(kind+"/"+name, func(b *testing.B) {
				o, err := meta.ParseOrder(kind)
				if err != nil {
					b.Fatal(err)
				}
				s := simulate.Scenario{
					Nodes: 1, Ranks: 8, Epochs: 5, Step: 0.01, Partitions: 1_000_000, Bytes: []int64{mib}, Memory: 400_000 * mib,
					Disk: 200_000 * mib, Packed: 0.5, Order: o, Workers: 8,
					Costs: simulate.Costs{Source: 1000 * mib, Latency: 0.002, DiskRead: 2000 * mib, DiskWrite: 1000 * mib, Decode: 500 * mib, Encode: 100 * mib},
				}
				for b.Loop() {
					if _, err := simulate.Run(b.Context(), s, named(b, name)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func named(t testing.TB, name string) func() policy.Policy {
	if _, err := policy.New(name); err != nil {
		t.Fatal(err)
	}
	return func() policy.Policy {
		p, _ := policy.New(name)
		return p
	}
}

package simulate_test

import (
	"testing"

	"pgregory.net/rapid"

	"rankfs/cache/policy"
	"rankfs/cache/simulate"
	"rankfs/meta"
	"rankfs/test/belady"
)

// Whatever the policy: what a rank finds in memory, and what it does not fetch, is
// no more than the best of all policies would find.
func TestNoPolicyBeatsTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, by := anyScenario(t), anyPolicy(t)
		s.Nodes, s.Ranks, s.Once, s.Disk, s.Packed, s.Tail = 1, 1, false, 0, 0, meta.TailKeep
		s.Bytes = s.Bytes[:1]
		o, err := simulate.RunChecked(s, by)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, e := range o.Epochs {
			found += int(e.Uses[policy.RAM])
		}
		if most := belady.Hits(s.Uses(), int(s.Memory/s.Bytes[0])); found > most {
			t.Fatalf("%d hits, the optimum is %d", found, most)
		}
	})
}

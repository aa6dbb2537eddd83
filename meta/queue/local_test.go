package queue

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// While a node holds a free unit its readers are given none from afar, by either
// policy, whichever of them are slow and whatever is assigned to which.
func TestLocalFirst(t *testing.T) {
	for _, policy := range []Policy{PolicyFlow, PolicyProbability} {
		t.Run(policy.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := &Scheduler{units: anyUnits(t), policy: policy, seed: rapid.Uint64().Draw(t, "seed")}
				s.begin()
				for id := range rapid.IntRange(1, 8).Draw(t, "readers") {
					s.readers.join(0, id, rapid.IntRange(0, len(s.units.nodes)-1).Draw(t, "node"))
				}
				var now time.Duration
				for range 200 {
					w := rapid.SampledFrom(s.readers.byID).Draw(t, "who")
					now += time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond
					if len(w.leases) > 0 {
						s.Finished(now, w.id, w.leases[0].unit)
					}
					here, free := s.units.nodes[w.node].here > 0, s.units.free > 0
					a, err := s.Next(now, w.id)
					if err != nil {
						t.Fatal(err)
					}
					if a.Verdict != Take {
						continue
					}
					if free && s.units.holds(w.node, a.Unit) != here {
						t.Fatalf("unit %d for node %d, local ones left: %v", a.Unit, w.node, here)
					}
					s.Began(now, w.id, a.Unit)
				}
			})
		})
	}
}

// A node without a part in the schedule takes what it holds although that is assigned
// to another, and leaves to that one what no node holds.
func TestLocalFirstOfWhatIsAssignedToAnother(t *testing.T) {
	p := unitsOf(t, [][]int{{0, 1}, {}})
	f := newFlow(p, &readers{})
	f.grow()
	f.bids = []bid{{reader: &reader{node: 0, quota: 1}}}
	f.match()
	if f.load[0] != 1 || f.load[1] != 0 || len(f.slack) != 1 {
		t.Fatalf("assigned are %v, loose %d", f.load, len(f.slack))
	}
	if unit := f.choose(&reader{node: 1}); unit != 0 {
		t.Errorf("unit %d goes to node 1, which holds unit 0", unit)
	}
}

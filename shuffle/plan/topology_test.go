package plan_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta/assign"
	"rankfs/shuffle/plan"
	"rankfs/shuffle/plan/plantest"
)

// A topology knows all distances, by whichever name of a host, and whether they
// differ.
func TestDistances(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := plantest.AnyScene.Draw(r, "scene")
		hosts, ofRank := plan.Number(s.Seats)
		near, differ := plan.NewTopologyByRack(s, hosts), false
		for chunk := range s.Holders {
			to := make(map[assign.Distance]bool)
			for rank, seat := range s.Seats {
				want := s.Distance(chunk, seat.Host)
				if got := near.Distance(near.Holders(chunk), ofRank[rank]); got != want {
					r.Fatalf("chunk %d on %v is at distance %v of %s, want %v", chunk, s.Holders[chunk], got, seat.Host, want)
				}
				to[want] = true
			}
			differ = differ || len(to) > 1
		}
		if near.Matters() != differ {
			r.Errorf("distances differ: %v, want %v", near.Matters(), differ)
		}
		racks := make(map[string]bool)
		for rank, seat := range s.Seats {
			rack := s.RackOf(seat.Host)
			if got := near.Rack(ofRank[rank]); got != rack {
				r.Errorf("%s is in rack %q, want %q", seat.Host, got, rack)
			}
			racks[rack] = true
		}
		delete(racks, "")
		if near.Racks() != len(racks) {
			r.Errorf("%d racks, want %v", near.Racks(), slices.Sorted(maps.Keys(racks)))
		}
	})
}

// Where two hosts share the first label of their names, that label alone names
// neither.
func TestAmbiguousNames(t *testing.T) {
	hosts, _ := plan.Number([]plan.Seat{{Host: "a.x", Ranks: 1}, {Host: "a.y", Ranks: 1}, {Host: "b", Ranks: 1}})
	if n, ok := hosts.Find("a"); ok {
		t.Errorf("a is host %d", n)
	}
	if n, ok := hosts.Find("a.y"); !ok || n != 1 {
		t.Errorf("a.y is host %d, %v", n, ok)
	}
	if n, ok := hosts.Find("B.z"); !ok || n != 2 {
		t.Errorf("B.z is host %d, %v", n, ok)
	}
}

package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta/assign"
	"rankfs/shuffle/plan"
)

// A scene is a dataset in racks, and ranks of a job on some hosts.
type scene struct {
	racks  map[string]string
	chunks [][]string
	seats  []plan.Seat
}

// anyScene draws hosts by full names, some without a rack, some of which hold
// nothing, and ranks on some of them, by either name, or elsewhere.
var anyScene = rapid.Custom(func(t *rapid.T) scene {
	s := scene{racks: make(map[string]string)}
	hosts := []string{"a.x", "b.x", "c", "d", "e", "f", "g"}
	for _, h := range hosts {
		if rack := rapid.IntRange(-1, 2).Draw(t, "rack of "+h); rack >= 0 {
			s.racks[h] = fmt.Sprint("/r", rack)
		}
	}
	for range rapid.IntRange(1, 30).Draw(t, "chunks") {
		s.chunks = append(s.chunks, rapid.SliceOfN(rapid.SampledFrom(hosts[:6]), 0, 3).Draw(t, "holders"))
	}
	for range rapid.IntRange(1, 6).Draw(t, "ranks") {
		s.seats = append(s.seats, plan.Seat{Host: rapid.SampledFrom([]string{"a", "b.x", "c.x", "g", "z"}).Draw(t, "seat"), Ranks: 1})
	}
	return s
})

func (s scene) Chunks() int { return len(s.chunks) }

func (s scene) AppendHosts(names [][]byte, chunk int) [][]byte {
	for _, name := range s.chunks[chunk] {
		names = append(names, []byte(name))
	}
	return names
}

func (s scene) Racks() map[string]string { return s.racks }

// first is the first label of a name: no two hosts of a scene share one.
func first(name string) string {
	label, _, _ := strings.Cut(name, ".")
	return label
}

// distance is how far a chunk is from a host, by the words of the scene.
func (s scene) distance(chunk int, host string) assign.Distance {
	is := func(name string) bool { return first(name) == first(host) }
	distance := assign.Remote
	for _, name := range s.chunks[chunk] {
		if is(name) {
			return assign.Local
		}
		if rack := s.rackOf(host); rack != "" && s.racks[name] == rack {
			distance = assign.Rack
		}
	}
	return distance
}

func (s scene) rackOf(host string) string {
	for name, rack := range s.racks {
		if first(name) == first(host) {
			return rack
		}
	}
	return ""
}

// A topology knows all distances, by whichever name of a host, and whether they
// differ.
func TestDistances(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := anyScene.Draw(r, "scene")
		hosts, ofRank := plan.Number(s.seats)
		near, differ := plan.NewTopologyByRack(s, hosts), false
		for chunk := range s.chunks {
			to := make(map[assign.Distance]bool)
			for rank, seat := range s.seats {
				want := s.distance(chunk, seat.Host)
				if got := near.Distance(near.Holders(chunk), ofRank[rank]); got != want {
					r.Fatalf("chunk %d on %v is at distance %v of %s, want %v", chunk, s.chunks[chunk], got, seat.Host, want)
				}
				to[want] = true
			}
			differ = differ || len(to) > 1
		}
		if near.Matters() != differ {
			r.Errorf("distances differ: %v, want %v", near.Matters(), differ)
		}
		racks := make(map[string]bool)
		for rank, seat := range s.seats {
			rack := s.rackOf(seat.Host)
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

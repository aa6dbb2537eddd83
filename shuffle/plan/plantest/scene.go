// Package plantest draws the hosts, racks and chunks that tests of plans are about, and
// says of them what a plan has to find.
package plantest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"rankfs/meta/assign"
	"rankfs/shuffle/plan"
)

// A Scene is a dataset in racks, and ranks of a job on some hosts. It is the index of
// that dataset as a plan.Topology asks for it.
type Scene struct {
	Rack    map[string]string // of hosts, by their full names
	Holders [][]string        // of each chunk
	Seats   []plan.Seat
}

// AnyScene draws hosts by full names, some without a rack, some of which hold
// nothing, and ranks on some of them, by either name, or elsewhere.
var AnyScene = rapid.Custom(func(t *rapid.T) Scene {
	s := Scene{Rack: make(map[string]string)}
	hosts := []string{"a.x", "b.x", "c", "d", "e", "f", "g"}
	for _, h := range hosts {
		if rack := rapid.IntRange(-1, 2).Draw(t, "rack of "+h); rack >= 0 {
			s.Rack[h] = fmt.Sprint("/r", rack)
		}
	}
	for range rapid.IntRange(1, 30).Draw(t, "chunks") {
		s.Holders = append(s.Holders, rapid.SliceOfN(rapid.SampledFrom(hosts[:6]), 0, 3).Draw(t, "holders"))
	}
	for range rapid.IntRange(1, 6).Draw(t, "ranks") {
		s.Seats = append(s.Seats, plan.Seat{Host: rapid.SampledFrom([]string{"a", "b.x", "c.x", "g", "z"}).Draw(t, "seat"), Ranks: 1})
	}
	return s
})

func (s Scene) Chunks() int { return len(s.Holders) }

func (s Scene) AppendHosts(names [][]byte, chunk int) [][]byte {
	for _, name := range s.Holders[chunk] {
		names = append(names, []byte(name))
	}
	return names
}

func (s Scene) Racks() map[string]string { return s.Rack }

// First is the first label of a name: no two hosts of a scene share one.
func First(name string) string {
	label, _, _ := strings.Cut(name, ".")
	return label
}

// Distance is how far a chunk is from a host, by the words of the scene.
func (s Scene) Distance(chunk int, host string) assign.Distance {
	distance := assign.Remote
	for _, name := range s.Holders[chunk] {
		if First(name) == First(host) {
			return assign.Local
		}
		if rack := s.RackOf(host); rack != "" && s.Rack[name] == rack {
			distance = assign.Rack
		}
	}
	return distance
}

// RackOf is the rack of a host by any of its names; empty if it is in none.
func (s Scene) RackOf(host string) string {
	for name, rack := range s.Rack {
		if First(name) == First(host) {
			return rack
		}
	}
	return ""
}

package admin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/fetch/batch"
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

// first is the first label of a name: no two hosts of a scene share one.
func first(name string) string {
	label, _, _ := strings.Cut(name, ".")
	return label
}

// distance is how far a chunk is from a host, by the words of the scene.
func (s scene) distance(chunk int, host string) assign.Distance {
	is := func(name string) bool { return first(name) == first(host) }
	rackOf := ""
	for name, rack := range s.racks {
		if is(name) {
			rackOf = rack
		}
	}
	distance := assign.Remote
	for _, name := range s.chunks[chunk] {
		if is(name) {
			return assign.Local
		}
		if rackOf != "" && s.racks[name] == rackOf {
			distance = assign.Rack
		}
	}
	return distance
}

// What a plan says of bytes is what its batches are, by distance, and no plan is
// dearer than fixed ranks, nor than one that knows every host by its name.
func TestPlanByRacks(t *testing.T) {
	k := catalogtest.New(t, 2)
	sizes, err := batch.NewSizes()
	if err != nil {
		t.Fatal(err)
	}
	defer sizes.Close()
	byRack := 0
	rapid.Check(t, func(r *rapid.T) {
		s := anyScene.Draw(r, "scene")
		n := plannerInRacks(t, k, s.racks, "batch=chunk", 3, s.chunks...)
		var seats []control.Seat
		for _, one := range s.seats {
			seats = append(seats, control.Seat{Host: one.Host, Ranks: 1})
		}
		name := fmt.Sprintf("d@ranks=%d,batch=chunk,order=%s", len(seats), rapid.SampledFrom([]string{"none", "full"}).Draw(r, "order"))
		got := n.mustPlan(t, control.PlanRequest{View: name, Seats: seats})
		v, d, err := n.planning.Views.Resolve(name)
		if err != nil {
			r.Fatal(err)
		}
		p := batchesOf(v, d.Version, sizes)
		strict := s.bytes(r, p)
		if err := p.Place(s.seats); err != nil {
			r.Fatal(err)
		}
		planned := s.bytes(r, p)
		if got.Plan.Bytes != planned || got.Strict.Bytes != strict {
			r.Fatalf("got %+v and %+v if fixed, want %+v and %+v", got.Plan.Bytes, got.Strict.Bytes, planned, strict)
		}
		var sum control.Bytes
		for _, h := range got.Nodes {
			sum.Local, sum.Near, sum.Remote = sum.Local+h.Local, sum.Near+h.Near, sum.Remote+h.Bytes-h.Local-h.Near
		}
		if sum != planned {
			r.Fatalf("hosts come to %+v, all to %+v", sum, planned)
		}
		cost := func(b control.Bytes) int64 { return b.Near + 2*b.Remote }
		if least := s.least(r, p); cost(planned) != least*30 || cost(planned) > cost(strict) {
			r.Fatalf("costs %d chunks, could cost %d; fixed %d", cost(planned)/30, least, cost(strict)/30)
		}
		if !p.Placed() && planned != strict {
			r.Fatal("nothing is placed, and it is better than fixed")
		}
		if planned.Near > 0 && planned.Near > strict.Near {
			byRack++
		}
		s.checkServing(r, got, planned)
	})
	if byRack == 0 {
		t.Error("no plan was chosen by racks")
	}
}

// bytes counts what the batches of a plan are.
func (s scene) bytes(t *rapid.T, p *views.Batches) (b control.Bytes) {
	for step := range p.Steps() {
		for rank := range p.Cut().Ranks {
			chunks, err := p.AppendChunks(nil, rank, step)
			if err != nil {
				t.Fatal(err)
			}
			for _, chunk := range chunks {
				n := p.Size(rank, step)
				switch s.distance(chunk, s.seats[rank].Host) {
				case assign.Local:
					b.Local += n
				case assign.Rack:
					b.Near += n
				default:
					b.Remote += n
				}
			}
		}
	}
	return b
}

// least is what a plan costs in chunks for which every host is a node.
func (s scene) least(t *rapid.T, p *views.Batches) (cost int64) {
	numbers, racks := make(map[string]int32), make(map[string]int32)
	number := func(m map[string]int32, name string) int32 {
		if _, ok := m[name]; !ok {
			m[name] = int32(len(m))
		}
		return m[name]
	}
	var c assign.Cluster
	for _, one := range s.seats {
		c.NodeOf = append(c.NodeOf, number(numbers, first(one.Host)))
	}
	var sets assign.Sets
	for _, names := range s.chunks {
		var set []int32
		for _, name := range names {
			set = append(set, number(numbers, first(name)))
		}
		sets.Add(set...)
	}
	c.Nodes = len(numbers)
	c.RackOf = slices.Repeat([]int32{-1}, c.Nodes)
	for name, rack := range s.racks {
		if n, ok := numbers[first(name)]; ok {
			c.RackOf[n] = number(racks, rack)
		}
	}
	planner, err := assign.New(c, &sets)
	if err != nil {
		t.Fatal(err)
	}
	strict, err := assign.StrictSteps(p.Cut(), 0, p.Cut().Steps())
	if err != nil {
		t.Fatal(err)
	}
	of := make([]int32, strict.Len())
	for i := range of {
		of[i] = int32(i)
	}
	d, err := planner.Epoch(strict, of)
	if err != nil {
		t.Fatal(err)
	}
	for rank, seat := range s.seats {
		for _, chunk := range d.Of(rank) {
			cost += int64(s.distance(int(chunk), seat.Host)) // 1 in the rack, 2 beyond
		}
	}
	return cost
}

// checkServing checks what must hold of who serves: it is said if something that
// somebody holds is not local, and the busiest is no less busy than the mean.
func (s scene) checkServing(t *rapid.T, p control.Plan, b control.Bytes) {
	known := false
	for chunk := range s.chunks {
		known = known || len(s.chunks[chunk]) > 0
	}
	v := p.Serving
	switch {
	case v == nil && (b.Near > 0 || b.Remote > 0 && !slices.ContainsFunc(s.chunks, func(c []string) bool { return len(c) == 0 })):
		t.Fatalf("nobody serves %+v", b)
	case v == nil:
	case !known || b.Near+b.Remote == 0:
		t.Fatalf("%+v serves nothing", v)
	case v.Hosts < 1 || v.Busiest == "" || v.Share*float64(v.Hosts) < 0.999 || v.Share > 1:
		t.Fatalf("%+v", v)
	}
}

// One host holds all that is not local, or two of a rack.
func TestServing(t *testing.T) {
	k := catalogtest.New(t, 2)
	racks := map[string]string{"a": "/r1", "b": "/r2", "h": "/r1", "i": "/r2"}
	far := []string{"h", "i"}
	for what, tt := range map[string]struct {
		racks map[string]string
		want  control.Serving
	}{
		"by racks": {racks, control.Serving{Hosts: 2, Busiest: "h", Share: 0.5}},
		"evenly":   {nil, control.Serving{Hosts: 2, Busiest: "h", Share: 0.5}},
	} {
		n := plannerInRacks(t, k, tt.racks, "ranks=2,batch=chunk", 1, far, far, far, far)
		p := n.mustPlan(t, control.PlanRequest{View: "d"})
		if p.Serving == nil || *p.Serving != tt.want {
			t.Errorf("%s: got %+v, want %+v", what, p.Serving, tt.want)
		}
		if rack := p.Plan.Bytes.Near; rack != map[bool]int64{true: 40}[tt.racks != nil] {
			t.Errorf("%s: %d bytes are in the rack", what, rack)
		}
	}
	n := planner(t, k, "ranks=2,batch=chunk", 1, []string{"h"}, []string{"h"}, []string{"h", "i"}, []string{"a"})
	if p := n.mustPlan(t, control.PlanRequest{View: "d"}); p.Serving == nil || p.Serving.Hosts != 2 || p.Serving.Share != 2./3 {
		t.Errorf("one host has most: %+v", p.Serving)
	}
}

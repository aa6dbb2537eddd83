package admin

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/fetch/batch"
	"rankfs/meta/assign"
	"rankfs/shuffle/plan"
	"rankfs/shuffle/plan/plantest"
)

// A scene counts what plans come to.
type scene struct{ plantest.Scene }

// What a plan says of bytes is what its batches are, by distance, and no plan is
// dearer than fixed ranks, nor than one that knows every host by its name.
func TestPlanByRacks(t *testing.T) {
	k := catalogtest.New(t, 2)
	sizes, err := batch.NewSizes()
	if err != nil {
		t.Fatal(err)
	}
	defer sizes.Close()
	rapid.Check(t, func(r *rapid.T) {
		s := scene{plantest.AnyScene.Draw(r, "scene")}
		s.check(t, r, k, sizes, rapid.SampledFrom([]string{"none", "full"}).Draw(r, "order"))
	})

	// Neither host holds anything, and each is in the rack of what the other reads.
	crossed := scene{plantest.Scene{
		Rack:    map[string]string{"a": "/r1", "b": "/r2", "h": "/r1", "i": "/r2"},
		Holders: [][]string{{"h"}, {"i"}},
		Seats:   []plan.Seat{{Host: "b", Ranks: 1}, {Host: "a", Ranks: 1}},
	}}
	if strict, planned := crossed.check(t, t, k, sizes, "none"); strict.Near != 0 || planned.Remote != 0 || planned.Near == 0 {
		t.Errorf("%+v where racks are known, %+v if fixed", planned, strict)
	}
}

// check plans an epoch of a scene and returns what it comes to, with fixed ranks
// and planned.
func (s scene) check(test *testing.T, t rapid.TB, k *catalogtest.Cluster, sizes *batch.Sizes, order string) (strict, planned control.Bytes) {
	n := plannerInRacks(test, k, s.Rack, "batch=chunk", 3, s.Holders...)
	var seats []control.Seat
	for _, one := range s.Seats {
		seats = append(seats, control.Seat{Host: one.Host, Ranks: 1})
	}
	name := fmt.Sprintf("d@ranks=%d,batch=chunk,order=%s", len(seats), order)
	got := n.mustPlan(test, control.PlanRequest{View: name, Seats: seats})
	v, d, err := n.planning.views.Resolve(name)
	if err != nil {
		t.Fatal(err)
	}
	p := batchesOf(v, d.Version, sizes)
	strict = s.bytes(t, p)
	if err := p.Place(s.Seats); err != nil {
		t.Fatal(err)
	}
	planned = s.bytes(t, p)
	if got.Plan.Bytes != planned || got.Strict.Bytes != strict {
		t.Fatalf("got %+v and %+v if fixed, want %+v and %+v", got.Plan.Bytes, got.Strict.Bytes, planned, strict)
	}
	var sum control.Bytes
	for _, h := range got.Nodes {
		sum.Local, sum.Near, sum.Remote = sum.Local+h.Local, sum.Near+h.Near, sum.Remote+h.Bytes-h.Local-h.Near
	}
	if sum != planned {
		t.Fatalf("hosts come to %+v, all to %+v", sum, planned)
	}
	cost := func(b control.Bytes) int64 { return b.Near + 2*b.Remote }
	if least := s.least(t, p); cost(planned) != least*30 || cost(planned) > cost(strict) {
		t.Fatalf("costs %d chunks, could cost %d; fixed %d", cost(planned)/30, least, cost(strict)/30)
	}
	if !p.Placed() && planned != strict {
		t.Fatal("nothing is placed, and it is better than fixed")
	}
	s.checkServing(t, got, planned)
	return strict, planned
}

// bytes counts what the batches of a plan are.
func (s scene) bytes(t rapid.TB, p *views.Batches) (b control.Bytes) {
	for step := range p.Steps() {
		for rank := range p.Cut().Ranks {
			chunks, err := p.AppendChunks(nil, rank, step)
			if err != nil {
				t.Fatal(err)
			}
			for _, chunk := range chunks {
				n := p.Size(rank, step)
				switch s.Distance(chunk, s.Seats[rank].Host) {
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
func (s scene) least(t rapid.TB, p *views.Batches) (cost int64) {
	numbers, racks := make(map[string]int32), make(map[string]int32)
	number := func(m map[string]int32, name string) int32 {
		if _, ok := m[name]; !ok {
			m[name] = int32(len(m))
		}
		return m[name]
	}
	var c assign.Cluster
	for _, one := range s.Seats {
		c.NodeOf = append(c.NodeOf, number(numbers, plantest.First(one.Host)))
	}
	var sets assign.Sets
	for _, names := range s.Holders {
		var set []int32
		for _, name := range names {
			set = append(set, number(numbers, plantest.First(name)))
		}
		sets.Add(set...)
	}
	c.Nodes = len(numbers)
	c.RackOf = slices.Repeat([]int32{-1}, c.Nodes)
	for name, rack := range s.Rack {
		if n, ok := numbers[plantest.First(name)]; ok {
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
	for rank, seat := range s.Seats {
		for _, chunk := range d.Of(rank) {
			cost += int64(s.Distance(int(chunk), seat.Host)) // 1 in the rack, 2 beyond
		}
	}
	return cost
}

// checkServing checks which hosts a survey says would serve: there are some if bytes are read from
// another host that holds them, and the busiest is no less busy than the mean.
func (s scene) checkServing(t rapid.TB, p control.Survey, b control.Bytes) {
	known := false
	for chunk := range s.Holders {
		known = known || len(s.Holders[chunk]) > 0
	}
	v := p.Serving
	switch {
	case v == nil && (b.Near > 0 || b.Remote > 0 && !slices.ContainsFunc(s.Holders, func(c []string) bool { return len(c) == 0 })):
		t.Fatalf("no host serves %+v", b)
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

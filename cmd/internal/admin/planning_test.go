package admin

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/survey"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

func seatsOf(hosts string) (seats []control.Seat) {
	for h := range strings.SplitSeq(hosts, " ") {
		seats = append(seats, control.Seat{Host: h, Ranks: 1})
	}
	return seats
}

// Each step is a chunk of each host, but not in the order of the ranks.
func TestPlanOfSteps(t *testing.T) {
	var chunks [][]string
	for i := range 64 {
		chunks = append(chunks, []string{[]string{"a", "d", "c", "b"}[i%4] + ".example.com"})
	}
	n := planner(t, catalogtest.New(t, 4), "ranks=4,batch=100", 100, chunks...)
	got := n.mustPlan(t, control.PlanRequest{View: "d"})
	want := control.Survey{
		ViewName: control.NameOf("d", "d@epoch=0,ranks=4,seed=0,order=none,step=400,tail=keep,assign=local"),
		State:    control.PlanOpen, Ranks: 4, Steps: 16, Looked: 16, Located: true,
		Plan:   control.Share{Local: 1, Balance: 1, Bytes: control.Bytes{Local: 64000}},
		Strict: control.Share{Local: 0.5, Balance: 1, Bytes: control.Bytes{Local: 32000, Remote: 32000}},
		Nodes: []control.Reads{
			{Host: "a", Ranks: 1, Bytes: 16000, Local: 16000, Strict: 16000},
			{Host: "b", Ranks: 1, Bytes: 16000, Local: 16000},
			{Host: "c", Ranks: 1, Bytes: 16000, Local: 16000, Strict: 16000},
			{Host: "d", Ranks: 1, Bytes: 16000, Local: 16000},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	elsewhere := n.mustPlan(t, control.PlanRequest{View: "d@ranks=4,step=400", Seats: seatsOf("a x x b b b b")})
	if local := elsewhere.Nodes[1]; local.Host != "x" || local.Ranks != 2 || local.Local != 0 || elsewhere.Plan.Local != 0.5 {
		t.Errorf("half of the ranks on a host that holds nothing: %+v", elsewhere)
	}
	fixed := n.mustPlan(t, control.PlanRequest{View: "d@assign=strict"})
	if fixed.State != control.PlanFixed || fixed.Reason == "" || fixed.Plan != want.Strict || fixed.Strict != want.Strict {
		t.Errorf("assign=strict: %+v", fixed)
	}
}

// Of chunks two hosts hold six and two; shares are equal all the same.
func TestPlanOfChunks(t *testing.T) {
	a, b := []string{"a"}, []string{"b"}
	n := planner(t, catalogtest.New(t, 2), "ranks=2,batch=chunk", 7, a, a, a, a, a, a, b, b)
	p := n.mustPlan(t, control.PlanRequest{View: "d", Weights: &control.Weights{Local: 1}})
	if p.Nodes[0].Bytes != 280 || p.Nodes[0].Local != 280 || p.Nodes[1].Local != 140 || p.Plan.Local != 0.75 {
		t.Errorf("got %+v", p)
	}
	want := &control.Program{
		Chunks: 8, Best: control.Point{Local: 8, Most: 6}, Points: 3,
		Curve: []control.Point{{Local: 6, Most: 4}, {Local: 7, Most: 5}, {Local: 8, Most: 6}},
	}
	if !reflect.DeepEqual(p.Program, want) {
		t.Errorf("for locality alone: %+v, want %+v", p.Program, want)
	}
	p = n.mustPlan(t, control.PlanRequest{View: "d", Weights: &control.Weights{Time: 1}})
	if want.Best = want.Curve[0]; !reflect.DeepEqual(p.Program, want) {
		t.Errorf("for time alone: %+v, want %+v", p.Program, want)
	}
}

// A curve of many points is shown by some, the first and the last among them.
func TestLongCurve(t *testing.T) {
	chunks := slices.Repeat([][]string{{"a"}}, 5000)
	n := planner(t, catalogtest.New(t, 2), "ranks=2,batch=chunk", 1, chunks...)
	p := n.mustPlan(t, control.PlanRequest{View: "d", Weights: &control.Weights{Local: 1}}).Program
	if p.Points != 2501 || len(p.Curve) != survey.MaxPoints || p.Curve[0].Most != 2500 || p.Curve[survey.MaxPoints-1].Most != 5000 {
		t.Errorf("%d of %d points, from %v to %v", len(p.Curve), p.Points, p.Curve[0], p.Curve[len(p.Curve)-1])
	}
}

// What a plan says is what the table of each batch's bytes says.
func TestPlanIsTheSumOfLocality(t *testing.T) {
	k := catalogtest.New(t, 4)
	sizes, err := batch.NewSizes()
	if err != nil {
		t.Fatal(err)
	}
	defer sizes.Close()
	rapid.Check(t, func(r *rapid.T) {
		host := func(label string) string { return rapid.SampledFrom([]string{"a", "b", "c", "d", "x"}).Draw(r, label) }
		var chunks [][]string
		for range rapid.IntRange(1, 12).Draw(r, "chunks") {
			var hosts []string
			for range rapid.IntRange(0, 3).Draw(r, "replicas") {
				if h := host("holder"); !slices.Contains(hosts, h) {
					hosts = append(hosts, h)
				}
			}
			chunks = append(chunks, hosts)
		}
		ranks := rapid.IntRange(1, 6).Draw(r, "ranks")
		var seats []control.Seat
		for range ranks {
			seats = append(seats, control.Seat{Host: host("seat"), Ranks: 1})
		}
		name := fmt.Sprintf("d@ranks=%d,batch=%s,order=%s,tail=%s,seed=%d", ranks,
			rapid.SampledFrom([]string{"1", "7", "40B", "chunk"}).Draw(r, "batch"),
			rapid.SampledFrom([]string{"none", "window:9", "full"}).Draw(r, "order"),
			rapid.SampledFrom([]string{"keep", "drop", "pad"}).Draw(r, "tail"), rapid.Uint64().Draw(r, "seed"))
		n := planner(t, k, "ranks=1,batch=1", uint64(rapid.IntRange(1, 9).Draw(r, "records")), chunks...)
		got := n.mustPlan(t, control.PlanRequest{View: name, Seats: seats})

		v, d, err := n.planning.views.Resolve(name)
		if err != nil {
			r.Fatal(err)
		}
		var placed []plan.Seat
		for _, s := range seats {
			placed = append(placed, plan.Seat{Host: s.Host, Ranks: 1})
		}
		p := batchesOf(v, d.Version, sizes)
		if err := p.Place(placed); err != nil {
			r.Fatal(err)
		}
		bytes, local := make(map[string]int64), make(map[string]int64)
		for rank, s := range seats {
			for step := range p.Steps() {
				bytes[s.Host] += p.Size(uint64(rank), step)
				local[s.Host] += p.Holders(s.Host, uint64(rank), step).On(s.Host)
			}
		}
		for _, h := range got.Nodes {
			if h.Bytes != bytes[h.Host] || h.Local != local[h.Host] {
				r.Errorf("host %s reads %d bytes, %d of them local; by its batches %d and %d", h.Host, h.Bytes, h.Local, bytes[h.Host], local[h.Host])
			}
		}
		// Steps are divided by who fetches a chunk, one of those that hold it.
		if got.Looked != p.Steps() || v.ByChunk() && got.Plan.Local < got.Strict.Local {
			r.Errorf("%d of %d steps, %v local, %v if fixed", got.Looked, p.Steps(), got.Plan.Local, got.Strict.Local)
		}
	})
}

func TestPlanOfManySteps(t *testing.T) {
	n := planner(t, catalogtest.New(t, 2), "ranks=2,step=2,order=full", 50_000, []string{"a"}, []string{"b"})
	p := n.mustPlan(t, control.PlanRequest{View: "d"})
	if p.Steps != 50_000 || p.Looked != survey.MaxSteps || p.Nodes[0].Bytes+p.Nodes[1].Bytes != survey.MaxSteps*20 {
		t.Errorf("got %+v", p)
	}
}

func TestPlanRefuses(t *testing.T) {
	n := planner(t, catalogtest.New(t, 2), "ranks=4,batch=1", 10, []string{"a"}, []string{"b"})
	here := planner(t, catalogtest.New(t, 2), "ranks=4,batch=1", 10, nil)
	here.dataset(t).Version.Source.Remote = false
	twice := catalogtest.New(t, 2)
	second := catalogtest.Node(2)
	second.Host = "a"
	twice.Apply(&state.Admit{TokenHash: strings.Repeat("a", 64), Node: second})
	huge := planner(t, catalogtest.New(t, 2), "ranks=4,batch=1", survey.MaxPositions/2+1, []string{"a"}, []string{"b"})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx  context.Context
		node *Admin
		r    control.PlanRequest
		want error
		text string
	}{
		"no dataset":             {node: n, r: control.PlanRequest{View: "e"}, want: meta.ErrNotExist, text: "rankfs dataset ls"},
		"an odd option":          {node: n, r: control.PlanRequest{View: "d@rank=1"}, want: meta.ErrInvalid},
		"too few seats":          {node: n, r: control.PlanRequest{View: "d", Seats: seatsOf("a b a")}, want: meta.ErrInvalid, text: "hosts for 3 ranks"},
		"no seat":                {node: n, r: control.PlanRequest{View: "d", Seats: []control.Seat{}}, want: meta.ErrInvalid, text: "hosts for 0 ranks"},
		"a seat of none":         {node: n, r: control.PlanRequest{View: "d", Seats: []control.Seat{{Host: "a"}}}, want: meta.ErrInvalid},
		"a seat nowhere":         {node: n, r: control.PlanRequest{View: "d", Seats: []control.Seat{{Ranks: 4}}}, want: meta.ErrInvalid},
		"a host of two nodes":    {node: answering(twice, n.datasets.catalog, "a"), r: control.PlanRequest{View: "d", Seats: seatsOf("a a a a")}, want: meta.ErrInvalid, text: "by its id"},
		"to settle on strangers": {node: n, r: control.PlanRequest{View: "d", Seats: seatsOf("a a b x"), Settle: true}, want: meta.ErrNotExist, text: `node "x"`},
		"to settle and unsettle": {node: n, r: control.PlanRequest{View: "d", Settle: true, Unsettle: true}, want: meta.ErrInvalid, text: "unsettle it first"},
		"to settle the fixed":    {node: n, r: control.PlanRequest{View: "d@assign=strict", Settle: true}, want: meta.ErrInvalid, text: "nothing to settle"},
		"to unsettle the fixed":  {node: n, r: control.PlanRequest{View: "d@assign=strict", Unsettle: true}, want: meta.ErrInvalid, text: "nothing to settle"},
		"to settle the local":    {node: here, r: control.PlanRequest{View: "d", Settle: true}, want: meta.ErrInvalid, text: "there is nothing to settle: all of the source lies on "},
		"a program of those":     {node: here, r: control.PlanRequest{View: "d", Weights: &control.Weights{}}, want: meta.ErrInvalid, text: "leave out --alpha, --beta and --pareto"},
		"a step of all there is": {node: huge, r: control.PlanRequest{View: "d@assign=strict,step=1TiB"}, want: meta.ErrInvalid, text: "steps of 4194306 records"},
		"a caller that has left": {ctx: gone, node: n, r: control.PlanRequest{View: "d"}, want: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.ctx == nil {
				tt.ctx = t.Context()
			}
			if p, err := tt.node.Plan(tt.ctx, tt.r); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %+v, %v, want %v %q", p, err, tt.want, tt.text)
			}
		})
	}
}

// All of a local source is on the host that has it, wherever the ranks are.
func TestPlanOfAnyPlace(t *testing.T) {
	n := planner(t, catalogtest.New(t, 2), "ranks=2,batch=1", 10, nil)
	n.dataset(t).Version.Source.Remote = false
	p := n.mustPlan(t, control.PlanRequest{View: "d"})
	if p.State != control.PlanFixed || !strings.HasSuffix(p.Reason, " on a") {
		t.Errorf("got %q, %q", p.State, p.Reason)
	}
	if a, b := p.Nodes[0], p.Nodes[1]; !p.Located || a.Local != 50 || b.Local != 0 || p.Plan.Local != 0.5 || p.Plan.Bytes != (control.Bytes{Local: 50, Remote: 50}) {
		t.Errorf("got %+v", p)
	}
	if p.Nodes[0].Bytes != 50 || p.Nodes[1].Bytes != 50 || p.Plan.Balance != 1 {
		t.Errorf("got %+v", p)
	}
}

// The first settle of a view wins, until a request unsettles it.
func TestPin(t *testing.T) {
	k := catalogtest.New(t, 2)
	n := planner(t, k, "ranks=4,batch=1", 10, []string{"a"}, []string{"b"})
	dropped := 0
	n.planning.drop = func(string) { dropped++ }
	seats := func(r control.PlanRequest) string {
		t.Helper()
		r.View = "d"
		p := n.mustPlan(t, r)
		text := p.State
		for _, h := range p.Nodes {
			text += fmt.Sprint(" ", h.Host, "*", h.Ranks)
		}
		return text
	}
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	want("asked for", seats(control.PlanRequest{Seats: seatsOf("a a b b")}), "open a*2 b*2")
	want("settled", seats(control.PlanRequest{Seats: seatsOf("a a b " + catalogtest.Node(1).ID), Settle: true}), "settled a*2 b*2")
	want("settled again", seats(control.PlanRequest{Seats: seatsOf("a a b b"), Settle: true}), "settled a*2 b*2")
	want("looked at", seats(control.PlanRequest{}), "settled a*2 b*2")
	want("settled as it is", seats(control.PlanRequest{Settle: true}), "settled a*2 b*2")
	want("asked for otherwise", seats(control.PlanRequest{Seats: seatsOf("a b b b")}), "open a*1 b*3")
	if _, err := n.Plan(t.Context(), control.PlanRequest{View: "d", Seats: seatsOf("a b b b"), Settle: true}); !errors.Is(err, meta.ErrExist) {
		t.Errorf("settled otherwise: %v", err)
	}
	if p := n.mustPlan(t, control.PlanRequest{View: "d", Seats: seatsOf("b b b b")}); p.Settled == nil {
		t.Error("it is not said that another plan is settled")
	}
	dropped = 0
	seats(control.PlanRequest{Unsettle: true})
	if dropped != 1 {
		t.Errorf("names were dropped %d times", dropped)
	}
	want("settled otherwise", seats(control.PlanRequest{Seats: seatsOf("a b b b"), Settle: true}), "settled a*1 b*3")
}

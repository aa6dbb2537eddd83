package assign_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/meta/assign"
)

var update = flag.Bool("update", false, "rewrite testdata")

// Plans must come out alike on every node and in every release, or a job
// that goes on after an upgrade reads other records. A change here is one for
// every plan that is pinned.
func TestGolden(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	c := caseOf{cluster: assign.Cluster{Nodes: 6, NodeOf: []int32{4, 4, 0, 0, 2, 2, 1, 1}, RackOf: []int32{0, 0, 1, 1, 2, 2}}}
	for range 40 {
		var set []int32
		for range r.IntN(4) {
			set = append(set, int32(r.IntN(3)*r.IntN(3)))
		}
		c.holders = append(c.holders, set)
	}
	for position := range 80 {
		c.of = append(c.of, int32(position/2))
	}
	c.strict = contiguous(t, []int32{10, 10, 10, 10, 10, 10, 10, 10})

	var out strings.Builder
	p := c.planner(t)
	tell := func(title string, d assign.Division) {
		fmt.Fprintf(&out, "%s\n", title)
		for rank, list := range ranks(d) {
			fmt.Fprintf(&out, "  rank %d on node %d: %v\n", rank, c.cluster.NodeOf[rank], list)
		}
		report := p.Report(c.of, d, c.strict, func(int) uint64 { return 1 })
		fmt.Fprintf(&out, "  local, rack, remote: %v, strict %v\n", report.Plan.Positions, report.Strict.Positions)
	}
	tell("step", c.step(t))
	epoch := c.epoch(t)
	tell("epoch", epoch.Division)
	fmt.Fprintf(&out, "  from %v, the busiest serves %d\n", epoch.From, epoch.Most)
	static := c.static(t, assign.Weights{Local: 9, Time: 1})
	tell("static", static.Division)
	fmt.Fprintf(&out, "  point %d of %v\n", static.Best, static.Curve)

	path := filepath.Join("testdata", "plans.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("plans have changed; -update rewrites them\n%s", out.String())
	}
}

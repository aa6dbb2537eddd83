package admin

import (
	"reflect"
	"strings"
	"testing"

	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/cmd/internal/control"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// Spellings are how a site may call its hosts a, b and c.
var spellings = map[string]func(string) string{
	"short": func(host string) string { return host },
	"full":  func(host string) string { return host + ".example.com" },
	"upper": func(host string) string { return strings.ToUpper(host) + ".Example.COM" },
	"root":  func(host string) string { return host + ".example.com." },
}

// All that depends on which host has the bytes is the same, whether nodes or HDFS call
// hosts by full or by short names: plans, owners, and the columns of locality.
func TestNamesOfHosts(t *testing.T) {
	want := told(t, spellings["short"], spellings["short"])
	if want.local == 0 || want.plan[0].Local == 0 {
		t.Fatalf("nothing is local where all names are alike: %+v", want)
	}
	for nodes, ours := range spellings {
		for hdfs, theirs := range spellings {
			t.Run(nodes+" nodes, "+hdfs+" in hdfs", func(t *testing.T) {
				if got := told(t, ours, theirs); !reflect.DeepEqual(got, want) {
					t.Errorf("%+v, want %+v", got, want)
				}
			})
		}
	}
}

// Telling is what a node says of its dataset where hosts matter.
type telling struct {
	plan     []control.Reads // of hosts a, b and c, without their names
	batches  []int           // what the ranks read, by chunk
	owners   []string        // of chunks, by the plan
	elected  []string        // without a plan
	local    int64           // of the first batch of rank 0
	here     []uint64        // ranks on b
	ofPerson string          // the node that a person calls b
}

func told(t *testing.T, ours, theirs func(string) string) (told telling) {
	k := catalogtest.Called(t, 3, ours)
	k.Up()
	var chunks [][]string
	for _, hosts := range []string{"ca", "ab", "bc", "a", "c", "b", "cb", "", "ba"} {
		var chunk []string
		for _, h := range strings.Split(hosts, "") {
			chunk = append(chunk, theirs(h))
		}
		chunks = append(chunks, chunk)
	}
	n := planner(t, k, "ranks=3,batch=chunk", 3, chunks...)
	seats := []plan.Seat{{Host: ours("a"), Ranks: 1}, {Host: ours("b"), Ranks: 1}, {Host: ours("c"), Ranks: 1}}
	for _, r := range n.mustPlan(t, control.PlanRequest{View: "d", Seats: []control.Seat{{Host: theirs("a"), Ranks: 1}, {Host: ours("b"), Ranks: 1}, {Host: "c", Ranks: 1}}}).Nodes {
		r.Host = ""
		told.plan = append(told.plan, r)
	}
	asked, d, err := n.planning.views.Resolve("d")
	if err != nil {
		t.Fatal(err)
	}
	p := batchesOf(asked, d.Version, nil)
	if err := p.Place(seats); err != nil {
		t.Fatal(err)
	}
	for rank := range p.Cut().Ranks {
		for step := range p.Steps() {
			chunks, err := p.AppendChunks(nil, rank, step)
			if err != nil {
				t.Fatal(err)
			}
			told.batches = append(told.batches, chunks...)
		}
	}
	told.local = p.Holders(ours("a"), 0, 0).On(ours("a"))
	asked.Step = meta.BatchSize{N: 3, Unit: meta.UnitRecords}
	byRecord := plan.New(asked, d.Version.Plans)
	if err := byRecord.Place(seats); err != nil {
		t.Fatal(err)
	}
	for chunk := range chunks {
		host, _ := byRecord.OwnerHost(chunk)
		id, _ := k.Owners.At(host)
		told.owners = append(told.owners, id)
		owner := k.Owners.Of(plan.Seed(d.Version.ID), chunk, chunks[chunk])
		if len(chunks[chunk]) == 1 { // of several, names decide
			told.elected = append(told.elected, owner)
		}
	}
	var nodes []string
	for i := range 3 {
		nodes = append(nodes, catalogtest.Node(i).ID)
	}
	k.Apply(&state.Settle{View: d.Default.String(), Generation: d.Generation, Nodes: state.RunsOf(nodes)})
	v, err := answering(k, n.datasets.catalog, theirs("b")).planning.views.Open("d")
	if err != nil || !v.Settled() {
		t.Fatalf("d is settled: %v, %v", err == nil && v.Settled(), err)
	}
	told.here = v.RanksHere()
	if told.ofPerson, err = findNode(k.State, theirs("b")); err != nil {
		t.Error(err)
	}
	return told
}

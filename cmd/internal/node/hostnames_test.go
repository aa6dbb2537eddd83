package node

import (
	"reflect"
	"strings"
	"testing"

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

// All that goes by who has the bytes is the same, whether nodes or HDFS call
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
	m := &member{machine: state.New()}
	commands := admissions(3)
	for _, c := range commands {
		if admit, ok := c.(*state.Admit); ok {
			admit.Node.Host = ours(admit.Node.Host)
		}
	}
	apply(t, m, commands...)
	nodes := m.machine.Nodes()
	for i := range nodes {
		nodes[i].Up = true
	}
	m.owners.Follow(ownersOf(nodes))
	var chunks [][]string
	for _, hosts := range []string{"ca", "ab", "bc", "a", "c", "b", "cb", "", "ba"} {
		var chunk []string
		for _, h := range strings.Split(hosts, "") {
			chunk = append(chunk, theirs(h))
		}
		chunks = append(chunks, chunk)
	}
	n := planner(t, m, "ranks=3,batch=chunk", 3, chunks...)
	seats := []plan.Seat{{Host: ours("a"), Ranks: 1}, {Host: ours("b"), Ranks: 1}, {Host: ours("c"), Ranks: 1}}
	for _, r := range n.mustPlan(t, control.PlanRequest{View: "d", Seats: []control.Seat{{Host: theirs("a"), Ranks: 1}, {Host: ours("b"), Ranks: 1}, {Host: "c", Ranks: 1}}}).Nodes {
		r.Host = ""
		told.plan = append(told.plan, r)
	}
	asked, d, err := n.resolve("d")
	if err != nil {
		t.Fatal(err)
	}
	p := batchesOf(asked, d.Version, n.sizes)
	if err := p.Place(seats); err != nil {
		t.Fatal(err)
	}
	v := &view{batches: p, dataset: d, host: ours("a"), seats: seats}
	for rank := range p.Cut().Ranks {
		for step := range p.Steps() {
			chunks, err := p.AppendChunks(nil, rank, step)
			if err != nil {
				t.Fatal(err)
			}
			told.batches = append(told.batches, chunks...)
		}
	}
	told.local = v.holders(0, 0).held(v.host)
	asked.Step = meta.BatchSize{N: 3, Unit: meta.UnitRecords}
	byRecord := plan.New(asked, d.Version.Plans)
	if err := byRecord.Place(seats); err != nil {
		t.Fatal(err)
	}
	for chunk := range chunks {
		host, _ := byRecord.OwnerHost(chunk)
		id, _ := m.owners.At(host)
		told.owners = append(told.owners, id)
		owner := m.owners.Of(plan.Seed(d.Version.ID), chunk, chunks[chunk])
		if len(chunks[chunk]) == 1 { // of several, names decide
			told.elected = append(told.elected, owner)
		}
	}
	told.here = (&view{batches: p, dataset: d, host: theirs("b"), seats: seats}).ranksHere(n)
	if told.ofPerson, err = m.find(theirs("b")); err != nil {
		t.Error(err)
	}
	return told
}

// What a host holds is found by any of its names, and by none that is of two hosts.
func TestHoldersByName(t *testing.T) {
	h := holders{"a.x": 1, "a.y": 2, "b.x": 4}
	for name, want := range map[string]int64{"a.x": 1, "a.y": 2, "a.z": 0, "b": 4, "c": 0} {
		if got := h.held(name); got != want {
			t.Errorf("%s holds %d bytes, want %d", name, got, want)
		}
	}
}

package node

import (
	"slices"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// A chunk is asked for where plans that were pinned before had it read, the last
// one first, and nowhere else.
func TestKeepersOfChunks(t *testing.T) {
	m := memberOf(t, 3)
	nodes := []string{made(0).ID, made(1).ID, made(2).ID}
	var chunks [][]string
	for range 12 {
		chunks = append(chunks, []string{"a", "b", "c"})
	}
	n := planner(t, m, "ranks=3,batch=chunk,order=full", 3, chunks...)
	of := n.dataset(t).Version
	up := m.machine.Nodes()
	for i := range up {
		up[i].Up = true
	}
	m.owners.Self = nodes[0]
	m.owners.Follow(ownersOf(up))
	pin := func(v meta.View) {
		d, _ := m.machine.Dataset("d")
		apply(t, m, &state.Pin{View: v.String(), Generation: d.Generation, Nodes: state.RunsOf(nodes)})
	}
	plan := func(name string) (meta.View, *listed) {
		v, _, err := n.resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := n.batches(v, of, []plan.Seat{{Host: "a", Ranks: 1}, {Host: "b", Ranks: 1}, {Host: "c", Ranks: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return v, &listed{p}
	}
	if _, p := plan("d@epoch=7"); p.Keepers(0) != nil {
		t.Errorf("%q are asked before anybody has read", p.Keepers(0))
	}
	v, first := plan("d")
	pin(v)
	v, second := plan("d@epoch=1")
	pin(v)
	v.Step = meta.BatchSize{N: 2} // whose batches are of records
	pin(v)
	_, now := plan("d@epoch=2")
	for chunk := range chunks {
		var want []string
		for _, p := range []*listed{second, first} {
			if node := nodes[p.reader(t, chunk)]; node != nodes[0] && !slices.Contains(want, node) {
				want = append(want, node)
			}
		}
		if got := now.Keepers(chunk); !slices.Equal(got, want) {
			t.Errorf("chunk %d: %q, want %q", chunk, got, want)
		}
	}
	up[1].Up = false
	m.owners.Follow(ownersOf(up))
	for chunk := range chunks {
		if slices.Contains(now.Keepers(chunk), nodes[1]) {
			t.Errorf("chunk %d is asked of a node that is down", chunk)
		}
	}
}

// A listed is a plan that is asked, batch after batch, who reads what.
type listed struct{ *batches }

func (p *listed) reader(t *testing.T, chunk int) (rank int) {
	for rank := range p.Cut().Ranks {
		for step := range p.Steps() {
			chunks, err := p.AppendChunks(nil, rank, step)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(chunks, chunk) {
				return int(rank)
			}
		}
	}
	t.Fatalf("nobody reads chunk %d", chunk)
	return 0
}

package views

import (
	"slices"
	"testing"

	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// A chunk is asked for where plans that were settled before had it read, the last
// one first, and nowhere else.
func TestEarlierReadersOfChunks(t *testing.T) {
	k := catalogtest.New(t, 3)
	nodes := []string{catalogtest.Node(0).ID, catalogtest.Node(1).ID, catalogtest.Node(2).ID}
	k.Owners.Self = nodes[0]
	k.Up()
	var chunks [][]string
	for range 12 {
		chunks = append(chunks, []string{"a", "b", "c"})
	}
	n := viewsOf(t, k, "ranks=3,batch=chunk,order=full", 3, chunks...)
	of := n.dataset(t).Version
	settle := func(v meta.View) {
		k.Apply(&state.Settle{View: v.String(), Generation: n.dataset(t).Generation, Nodes: state.RunsOf(nodes)})
	}
	plan := func(name string) (meta.View, *listed) {
		v, _, err := n.Resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := n.maker.batches(v, of, []plan.Seat{{Host: "a", Ranks: 1}, {Host: "b", Ranks: 1}, {Host: "c", Ranks: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return v, &listed{p}
	}
	if _, p := plan("d@epoch=7"); p.EarlierReaders(0) != nil {
		t.Errorf("%q are asked before a rank has read", p.EarlierReaders(0))
	}
	v, first := plan("d")
	settle(v)
	v, second := plan("d@epoch=1")
	settle(v)
	v.Step = meta.BatchSize{N: 2} // whose batches are of records
	settle(v)
	_, now := plan("d@epoch=2")
	for chunk := range chunks {
		var want []string
		for _, p := range []*listed{second, first} {
			if node := nodes[p.reader(t, chunk)]; node != nodes[0] && !slices.Contains(want, node) {
				want = append(want, node)
			}
		}
		if got := now.EarlierReaders(chunk); !slices.Equal(got, want) {
			t.Errorf("chunk %d: %q, want %q", chunk, got, want)
		}
	}
	k.Up("b")
	for chunk := range chunks {
		if slices.Contains(now.EarlierReaders(chunk), nodes[1]) {
			t.Errorf("chunk %d is asked of a node that is down", chunk)
		}
	}
}

// A listed is a plan that is asked, batch after batch, which rank reads what.
type listed struct{ *Batches }

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
	t.Fatalf("no rank reads chunk %d", chunk)
	return 0
}

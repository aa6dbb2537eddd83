package node

import (
	"errors"
	"maps"
	"testing"

	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/control"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// sharers are three nodes with replicas of four chunks, all up.
func sharers(t *testing.T) (*Node, *catalog.Dataset, []plan.Seat) {
	m := memberOf(t, 3)
	n := planner(t, m, "ranks=4,batch=2", 6, []string{"a", "b"}, []string{"a", "b"}, []string{"b", "c"}, []string{"c"})
	nodes := m.machine.Nodes()
	for i := range nodes {
		nodes[i].Up = true
	}
	m.owners.Follow(ownersOf(nodes))
	return n, n.dataset(t), []plan.Seat{{Host: "a", Ranks: 1}, {Host: "b", Ranks: 2}, {Host: "c", Ranks: 1}}
}

// viewOn is the view as the node on a host has it.
func viewOn(t *testing.T, n *Node, d *catalog.Dataset, seats []plan.Seat, host string, parts bool) *view {
	t.Helper()
	p := batchesOf(d.Default, d.Version, n.sizes)
	if err := p.Place(seats); err != nil {
		t.Fatal(err)
	}
	if parts {
		p.Chunks = newChunks(nil, d.Version, p.Plan)
	}
	n.member.owners.Self, _ = n.member.owners.At(host)
	return &view{p, d, nil, host, seats}
}

// What the nodes of a cluster are to have is all there is, each batch or chunk
// on one of them, and what is read first comes first.
func TestShares(t *testing.T) {
	for name, parts := range map[string]bool{"batches": false, "chunks": true} {
		t.Run(name, func(t *testing.T) {
			n, d, seats := sharers(t)
			got, bytes := make(map[[2]uint64]int), int64(0)
			for _, host := range []string{"a", "b", "c"} {
				s, err := viewOn(t, n, d, seats, host, parts).share(n, nil)
				if err != nil || s.kind != name || s.count() == 0 {
					t.Fatalf("%s: %+v, %v", host, s, err)
				}
				last := uint64(0)
				for i := range s.count() {
					rank, step := s.at(i)
					if got[[2]uint64{rank, step}]++; step < last {
						t.Errorf("%s: step %d comes after %d", host, step, last)
					}
					last = step
				}
				bytes += s.bytes
			}
			want := make(map[[2]uint64]int)
			for rank := range uint64(4) {
				for step := range uint64(3) {
					want[[2]uint64{rank, step}] = 1
				}
			}
			if parts {
				want = map[[2]uint64]int{{0, 0}: 1, {0, 1}: 1, {0, 2}: 1, {0, 3}: 1}
			}
			if !maps.Equal(got, want) || bytes != 240 {
				t.Errorf("%d bytes of %v, want 240 of %v", bytes, got, want)
			}
		})
	}
}

func TestShareOfARank(t *testing.T) {
	n, d, seats := sharers(t)
	v := viewOn(t, n, d, seats, "a", false)
	for rank, want := range map[uint64]error{0: nil, 3: nil, 4: meta.ErrInvalid} {
		s, err := v.share(n, &rank)
		if !errors.Is(err, want) || err == nil && (s.count() != v.Steps() || s.bytes != 60) {
			t.Errorf("rank %d: %+v, %v", rank, s, err)
		}
	}
	rank := uint64(0)
	if _, err := viewOn(t, n, d, seats, "a", true).share(n, &rank); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("of chunks: %v", err)
	}
}

// What is kept of a view goes by its chunks where there are some, and by the same
// name in all views that have them.
func TestWhatIsKept(t *testing.T) {
	n, d, seats := sharers(t)
	whole := viewOn(t, n, d, seats, "a", false)
	parts := viewOn(t, n, d, seats, "a", true)
	chunked, err := d.Default.With("batch=chunk,epoch=3,order=full")
	if err != nil {
		t.Fatal(err)
	}
	chunks := batchesOf(chunked, d.Version, n.sizes)
	if plans, kind := whole.kept(); kind != control.Batches || plans[0] != whole.ID() {
		t.Errorf("batches are kept as %s", kind)
	}
	one, kind := parts.kept()
	other, alike := chunks.kept()
	if kind != control.Chunks || alike != kind || one[0] != other[0] {
		t.Errorf("%s %x, and %s %x", kind, one, alike, other)
	}
	n.entitle(parts.batches)
	n.entitle(chunks)
	if got := n.short(n.titles.find(one[0])); got != "d" {
		t.Errorf("the chunks are called %q", got)
	}
	if got := n.short(n.titles.find(chunks.ID())); got != "d@epoch=3,order=full,step=chunk" {
		t.Errorf("the batches are called %q", got)
	}
}

package node

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"

	"rankfs/cache/peers"
	"rankfs/shuffle/plan"
)

// A chunk is owned where its readers' plan says, until that node is down;
// then where all that are up would have it.
func TestOwnerFollowsThePlan(t *testing.T) {
	m := memberOf(t, 3)
	n := planner(t, m, "ranks=3,batch=2", 6, []string{"a", "b"}, []string{"a", "b"}, []string{"b", "c"}, []string{"c"})
	d := n.catalog.mu.byName["d"]
	p := newFiller(plan.New(d.view, d.content.version), d.content, n.sizes)
	if err := p.Place([]plan.Seat{{Host: "a", Ranks: 1}, {Host: "b", Ranks: 1}, {Host: "c", Ranks: 1}}); err != nil {
		t.Fatal(err)
	}
	parts := newParts(d.content, n.sizes, nil, &readers{p.Plan})
	nodes := m.machine.Nodes()
	for i := range nodes {
		nodes[i].Up = true
	}
	m.owners.Follow(ownersOf(nodes))
	for chunk := range 4 {
		at, _ := p.OwnerHost(chunk)
		want, ok := m.owners.At(at)
		if got := parts.owner(chunk); !ok || got != want {
			t.Errorf("chunk %d of %s is owned by %q, want %q", chunk, at, got, want)
		}
		down := m.machine.Nodes()
		for i := range down {
			down[i].Up = down[i].Host != at
		}
		m.owners.Follow(ownersOf(down))
		if got, drawn := parts.owner(chunk), m.owners.Of(parts.filler.seed(), chunk, d.content.hosts(chunk)); got != drawn || got == want {
			t.Errorf("with %s down chunk %d is owned by %q, want %q", at, chunk, got, drawn)
		}
		m.owners.Follow(ownersOf(nodes))
		if newParts(d.content, n.sizes, nil, nil).filler.Ahead(0, uint64(chunk)) {
			t.Errorf("chunk %d is fetched ahead for nobody knows whom", chunk)
		}
	}
	if chunks, err := parts.filler.AppendChunks(nil, 0, 2); err != nil || !slices.Equal(chunks, []int{2}) {
		t.Errorf("parts are divided as their readers are: %v %v", chunks, err)
	}
}

// An owner that does not answer, and that nobody has missed yet, is passed over by who
// has room for its chunks, and by nobody else.
func TestAnOwnerThatDoesNotAnswer(t *testing.T) {
	m := memberOf(t, 2)
	n := planner(t, m, "ranks=2,batch=2", 2, []string{"a"}, []string{"b"})
	nodes := m.machine.Nodes()
	for i := range nodes {
		nodes[i].Up = true
	}
	m.owners.Follow(ownersOf(nodes))
	d := n.catalog.mu.byName["d"]
	p := newFiller(plan.New(d.view, d.content.version), d.content, n.sizes)
	p.parts = newParts(d.content, n.sizes, nil, &readers{nil})
	p.peers = peers.New(func(context.Context, string) (net.Conn, error) { return nil, errors.New("nobody there") }, peers.Config{})
	defer p.peers.Close()
	away := 0
	for p.parts.owner(away) == m.owners.Self {
		away++
	}
	owner := p.parts.owner(away)
	want := peers.Want{Dataset: d.content.id, Runs: []peers.Run{{First: 0, N: 1}}}
	for _, row := range []struct {
		rests, roomy bool
		want         string
	}{{false, true, owner}, {true, true, m.owners.Self}, {true, false, owner}} {
		for row.rests && !p.peers.Rests(owner) {
			if p.peers.Gather(t.Context(), owner, want, [][]byte{make([]byte, 1)}) == nil {
				t.Fatal("it answered")
			}
		}
		p.roomy = row.roomy
		if got := p.fetches(away); got != row.want {
			t.Errorf("it rests %v, room here %v: chunk %d of %q is fetched by %q", row.rests, row.roomy, away, owner, got)
		}
	}
}

// Of a copied source one node has the copy: who indexed it while that is up, then
// one of the others, on which all agree.
func TestKeeper(t *testing.T) {
	m := memberOf(t, 3)
	nodes := m.machine.Nodes()
	for _, row := range []struct {
		name           string
		remote, copied bool
		down           int  // the node that indexed it, or another; none below zero
		elsewhere      bool // as the others see it
	}{
		{"its own file", false, false, -1, true},
		{"its own file, gone", false, false, 0, false},
		{"in HDFS", true, false, -1, false},
		{"a copy", false, true, -1, true},
		{"a copy, another one gone", false, true, 1, true},
		{"a copy, gone", false, true, 0, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			for i := range nodes {
				nodes[i].Up = i != row.down
			}
			keepers := make(map[string]bool)
			for i, n := range nodes {
				o := &plan.Owners{Self: n.ID}
				o.Follow(ownersOf(nodes))
				c := &content{remote: row.remote, copied: row.copied, origin: nodes[0].ID, owners: o}
				if i == row.down {
					continue
				}
				keepers[c.keeper()] = true
				if home := c.elsewhere(); (home != "") != (row.elsewhere && c.keeper() != n.ID) || home == n.ID {
					t.Errorf("as node %d has it the source is on %q", i, home)
				}
			}
			if gone := row.down == 0 && row.copied; len(keepers) != 1 || keepers[nodes[0].ID] == gone {
				t.Errorf("keepers are %v", keepers)
			}
		})
	}
}

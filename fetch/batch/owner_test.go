package batch

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/fetch/index"
	"rankfs/fetch/peers"
	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/shuffle/plan"
)

// nodesOn are nodes that are up, each on one of the hosts.
func nodesOn(hosts ...string) (all []plan.Node) {
	for _, h := range hosts {
		all = append(all, plan.Node{ID: "node-" + h, Host: h, Up: true})
	}
	return all
}

// remote is a version whose chunks are so many records of 10 bytes each on the hosts
// of their number.
func remote(t *testing.T, o *plan.Owners, records uint64, chunks ...[]string) *Version {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index")
	b, err := index.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f := b.AddFile(index.File{Path: "f", Size: 1 << 40})
	for i, hosts := range chunks {
		b.BeginChunk(hosts...)
		b.AddStride(f, int64(i)*int64(records)*10, 10, records)
	}
	if err := b.Commit("v1"); err != nil {
		t.Fatal(err)
	}
	v, err := Open(path, Config{Source: "hdfs:///f", Hash: strings.Repeat("5", 64), Owners: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Opened().Close() })
	return v
}

func planOf(t *testing.T, v *Version, options string) *plan.Plan {
	t.Helper()
	view, err := meta.View{Dataset: "d"}.With(options)
	if err != nil {
		t.Fatal(err)
	}
	return plan.New(view, v.Plans)
}

// A chunk is owned where its readers' plan says, until that node is down; then where
// all that are up would have it.
func TestOwnerFollowsThePlan(t *testing.T) {
	nodes := nodesOn("a", "b", "c")
	o := new(plan.Owners)
	o.Follow(nodes)
	v := remote(t, o, 6, []string{"a", "b"}, []string{"a", "b"}, []string{"b", "c"}, []string{"c"})
	p := planOf(t, v, "ranks=3,batch=2")
	if err := p.Place([]plan.Seat{{Host: "a", Ranks: 1}, {Host: "b", Ranks: 1}, {Host: "c", Ranks: 1}}); err != nil {
		t.Fatal(err)
	}
	chunks := &Chunks{Version: v, Readers: p}
	for chunk := range 4 {
		at, _ := p.OwnerHost(chunk)
		want, ok := o.At(at)
		if got := chunks.Owner(chunk); !ok || got != want {
			t.Errorf("chunk %d of %s is owned by %q, want %q", chunk, at, got, want)
		}
		down := nodesOn("a", "b", "c")
		for i := range down {
			down[i].Up = down[i].Host != at
		}
		o.Follow(down)
		if got, drawn := chunks.Owner(chunk), o.Of(plan.Seed(v.ID), chunk, v.Hosts(chunk)); got != drawn || got == want {
			t.Errorf("with %s down chunk %d is owned by %q, want %q", at, chunk, got, drawn)
		}
		o.Follow(nodes)
	}
}

// An owner that does not answer, and that the cluster has not missed yet, is passed over
// by a node that has room for its chunks, and by no other.
func TestAnOwnerThatDoesNotAnswer(t *testing.T) {
	nodes := nodesOn("a", "b")
	o := &plan.Owners{Self: nodes[0].ID}
	o.Follow(nodes)
	v := remote(t, o, 2, []string{"a"}, []string{"b"})
	transport := wire.New(func(context.Context, string) (net.Conn, error) { return nil, errors.New("connection refused") }, wire.Config{})
	defer transport.Close()
	client := peers.New(transport, peers.Config{})
	b := &Batches{Plan: planOf(t, v, "ranks=2,batch=2"), Version: v, Chunks: &Chunks{Version: v}, Peers: client}
	away := 0
	for b.Chunks.Own(away) {
		away++
	}
	owner := b.Chunks.Owner(away)
	want := peers.Want{Dataset: v.ID, Runs: []peers.Run{{First: 0, N: 1}}}
	for _, row := range []struct {
		rests, roomy bool
		want         string
	}{{false, true, owner}, {true, true, o.Self}, {true, false, owner}} {
		for row.rests && !client.BacksOff(owner) {
			if client.Gather(t.Context(), owner, want, [][]byte{make([]byte, 1)}) == nil {
				t.Fatal("it answered")
			}
		}
		b.Roomy = row.roomy
		if got := b.fetcher(away); got != row.want {
			t.Errorf("it rests %v, room here %v: chunk %d of %q is fetched by %q", row.rests, row.roomy, away, owner, got)
		}
	}
}

// Of a copied source one node has the copy: the one that indexed it while that is up,
// then one of the others, on which all agree.
func TestOwnerOfACopy(t *testing.T) {
	nodes := nodesOn("a", "b", "c")
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
			owners := make(map[string]bool)
			for i, n := range nodes {
				o := &plan.Owners{Self: n.ID}
				o.Follow(nodes)
				s := &Source{Remote: row.remote, copied: row.copied, origin: nodes[0].ID, owners: o}
				if i == row.down {
					continue
				}
				owner := s.copyOwner()
				owners[owner] = true
				if at := s.Elsewhere(); (at != "") != (row.elsewhere && owner != n.ID) || at == n.ID {
					t.Errorf("as node %d has it the source is on %q", i, at)
				}
			}
			if gone := row.down == 0 && row.copied; len(owners) != 1 || owners[nodes[0].ID] == gone {
				t.Errorf("owners of the copy are %v", owners)
			}
		})
	}
}

package placement_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rankfs/shuffle/placement"
)

const keys = 100_000

func site(n int) (nodes []placement.Node) {
	for i := range n {
		nodes = append(nodes, placement.Node{
			ID: fmt.Sprintf("%016x", 1+i), Host: fmt.Sprint("node", i), Rack: fmt.Sprint("/rack", i%4), Room: 1 << 30,
		})
	}
	return nodes
}

// shares is how many of the keys each node has a copy of.
func shares(n int, nodes []placement.Node) map[string]int {
	of := make(map[string]int)
	for k := range uint64(keys) {
		for _, id := range placement.Choose(placement.Key("job", "stage", k), n, "", nodes) {
			of[id]++
		}
	}
	return of
}

// Nodes of equal room have equal shares, of one copy and of two, and nodes of unequal
// room what is proportional.
func TestEvenShares(t *testing.T) {
	for _, n := range []int{2, 4, 32} {
		for of := 1; of <= min(2, n-1); of++ {
			most := slices.Max(slices.Collect(maps.Values(shares(of, site(n)))))
			if mean := keys * of / n; float64(most) > 1.05*float64(mean) {
				t.Errorf("%d copies on %d nodes: a node has %d, where the mean is %d", of, n, most, mean)
			}
		}
	}
	nodes := site(4)
	nodes[0].Room *= 5 // of 8
	if got := shares(1, nodes)[nodes[0].ID]; got < keys*61/100 || got > keys*64/100 {
		t.Errorf("a node with 5/8 of the room has %d of %d", got, keys)
	}
}

// A node that joins takes over its share, and nothing moves between the others.
func TestAJoiningNodeMovesItsShare(t *testing.T) {
	const n = 8
	before, after := site(n), site(n+1)
	moved := 0
	for k := range uint64(keys) {
		was, is := placement.Choose(k, 1, "", before), placement.Choose(k, 1, "", after)
		if was[0] == is[0] {
			continue
		}
		if moved++; is[0] != after[n].ID {
			t.Fatalf("key %d went from %s to %s, which was there before", k, was[0], is[0])
		}
	}
	if most := keys / (n + 1) * 105 / 100; moved > most {
		t.Errorf("%d of %d keys moved, more than %d", moved, keys, most)
	}
}

// host is the name of a node's host without the domain, by which it is no other host.
func host(n placement.Node) string {
	name, _, _ := strings.Cut(n.Host, ".")
	return name
}

// Copies are on as many hosts as there can be, never two on one, whichever of its names a
// node has it by, on as many racks as
// there are, and on the writer's node first; nothing is put where there is no room.
func TestCopiesAreApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes []placement.Node
		for i := range rapid.IntRange(0, 9).Draw(t, "nodes") {
			nodes = append(nodes, placement.Node{
				ID:   fmt.Sprintf("%016x", 1+i),
				Host: fmt.Sprint("h", rapid.IntRange(0, 6).Draw(t, "host"), rapid.SampledFrom([]string{"", ".example.com"}).Draw(t, "domain")),
				Rack: rapid.SampledFrom([]string{"", "/a", "/b", "/c"}).Draw(t, "rack"),
				Room: rapid.Int64Range(-1, 3).Draw(t, "room"),
			})
		}
		n := rapid.IntRange(1, 4).Draw(t, "copies")
		first := fmt.Sprintf("%016x", rapid.IntRange(0, 9).Draw(t, "first"))
		got := placement.Choose(rapid.Uint64().Draw(t, "key"), n, first, nodes)

		byID, hosts := make(map[string]placement.Node), make(map[string]bool)
		for _, c := range nodes {
			byID[c.ID] = c
			if c.Room > 0 {
				hosts[host(c)] = true
			}
		}
		if len(got) != min(n, len(hosts)) {
			t.Fatalf("%d copies of %d, with room on %d hosts", len(got), n, len(hosts))
		}
		used := make(map[string]bool)
		for i, id := range got {
			c := byID[id]
			if used[host(c)] || c.Room <= 0 {
				t.Fatalf("%v: %+v", got, c)
			}
			used[host(c)] = true
			if id == first && i > 0 {
				t.Fatalf("the writer's node is copy %d of %v", i, got)
			}
		}
		if byID[first].Room > 0 && !slices.Contains(got, first) {
			t.Fatalf("%v has no copy on the writer's node %s", got, first)
		}
	})
}

// Racks are apart where hosts of others have room.
func TestRacksAreApart(t *testing.T) {
	for k := range uint64(1000) {
		nodes := site(8)
		got := placement.Choose(k, 4, "", nodes)
		racks := make(map[string]bool)
		for _, id := range got {
			i := slices.IndexFunc(nodes, func(c placement.Node) bool { return c.ID == id })
			racks[nodes[i].Rack] = true
		}
		if len(racks) != 4 {
			t.Fatalf("copies %v are on %d racks of 4", got, len(racks))
		}
	}
}

// What has too few copies gets more on racks that have none, and never on a host that has one,
// whether the node there has room or not.
func TestMoreCopies(t *testing.T) {
	for k := range uint64(1000) {
		nodes := site(8) // racks are those of the numbers modulo 4
		nodes[0].Room = 0
		nodes[5].Host = nodes[0].Host
		got := placement.More(k, []string{nodes[0].ID, nodes[1].ID}, nodes)
		racks := make(map[string]bool)
		for i, id := range got {
			at := slices.IndexFunc(nodes, func(c placement.Node) bool { return c.ID == id })
			if at < 2 || at == 5 {
				t.Fatalf("%v: a copy more on host %s", got, nodes[at].Host)
			}
			if racks[nodes[at].Rack] = true; i == 1 && (len(racks) != 2 || racks["/rack0"] || racks["/rack1"]) {
				t.Fatalf("of %v the first two are on racks %v", got, racks)
			}
		}
		if len(got) != 5 {
			t.Fatalf("%d nodes of 5 may have more copies", len(got))
		}
	}
}

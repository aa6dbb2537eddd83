// Package placement answers one question: which nodes keep the copies of a map's output?
//
// Where a writer keeps the first copy, others have its further ones in turn. Where all copies
// are to be where the map's name says, that follows from its key and from the nodes alone, so
// that it needs no table, and a node that joins or leaves moves no more than its own share.
// Each node gets a number for each key, larger for more room, and the largest numbers win:
// weighted rendezvous hashing. Beside a ring of 128 points a node it divides evenly
// without points, and what a node that joins takes over is exactly its share.
package placement

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A Node is one that may keep copies. One that is drained, down, failed or full has no
// Room.
type Node struct {
	ID   string
	Host string
	Rack string // empty if it is not known
	Room int64  // bytes of its pool, its weight

	Leaves bool // it is drained: what it has is to be elsewhere
}

// Key is the number by which the copies of a map are placed.
func Key(job, stage string, number uint64) uint64 {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, len(job)+len(stage)+10), number)
	b = append(append(b, job...), 0)
	return xxhash.Sum64(append(b, stage...))
}

// Choose returns the nodes of up to n copies, the first choice first. No two are on
// one host, and as many racks have one as can: of nodes on racks that have none yet
// the first in the order of the key comes next, then of any. If there are fewer hosts
// with room than n, they are fewer. If first has room, it is the first.
func Choose(key uint64, n int, first string, nodes []Node) []string {
	return withFirst(n, first, byPreference(key, nodes))
}

// More returns the nodes of further copies of what some nodes have, as Choose does: none is on a
// host that has one, and those come first that are on racks which have none.
func More(key uint64, has []string, nodes []Node) []string {
	var chosen []Node
	for _, c := range nodes {
		if slices.Contains(has, c.ID) {
			chosen = append(chosen, c)
		}
	}
	return apart(len(nodes), chosen, byPreference(key, nodes))[len(chosen):]
}

// InTurn is Choose for what the first of the nodes writes, whose copies others have in turn:
// each time those come first that were given least of it, for their room, and then those that
// follow the first one in a circle, in which racks take turns. So nodes that write equally much
// are given equally much, from the first copy on; by keys of their own some are given several
// of few large copies, and others none.
func InTurn(circle uint64, n int, first string, given map[string]int, nodes []Node) []string {
	return withFirst(n, first, byTurn(circle, first, given, nodes))
}

// withFirst takes nodes in an order, but one of them before all others.
func withFirst(n int, first string, order []Node) []string {
	var chosen []Node
	if i := slices.IndexFunc(order, func(c Node) bool { return c.ID == first }); i >= 0 {
		chosen = append(chosen, order[i])
	}
	return apart(n, chosen, order)
}

// apart takes nodes in an order beside those that are chosen.
func apart(n int, chosen, order []Node) []string {
	fits := func(c Node, apart bool) bool {
		return !slices.ContainsFunc(chosen, func(has Node) bool {
			return meta.SameHost(has.Host, c.Host) || apart && has.Rack == c.Rack && c.Rack != ""
		})
	}
	for _, apart := range []bool{true, false} {
		for _, c := range order {
			if len(chosen) < n && fits(c, apart) {
				chosen = append(chosen, c)
			}
		}
	}
	var ids []string
	for _, c := range chosen[:min(n, len(chosen))] {
		ids = append(ids, c.ID)
	}
	return ids
}

// byTurn are the nodes that have room, those that were given least for their room first; of
// equal ones those that come next behind the first in the circle.
func byTurn(circle uint64, first string, given map[string]int, nodes []Node) []Node {
	order := inCircle(circle, nodes)
	i := slices.IndexFunc(order, func(n Node) bool { return n.ID == first })
	order = slices.Concat(order[i+1:], order[:i+1])
	order = slices.DeleteFunc(order, func(n Node) bool { return n.Room <= 0 })
	most := float64(0)
	for _, n := range order {
		most = max(most, float64(n.Room))
	}
	// What the next copy fills of a node, in whole copies of the largest one: so nodes of about
	// the same room are equal.
	fills := func(n Node) float64 { return math.Floor((float64(given[n.ID]) + 0.5) * most / float64(n.Room)) }
	slices.SortStableFunc(order, func(a, b Node) int { return cmp.Compare(fills(a), fills(b)) })
	return order
}

// inCircle are all nodes: the first of each rack, the second of each, and so on.
func inCircle(circle uint64, nodes []Node) []Node {
	type placed struct {
		Node
		place, inRack uint64
	}
	all := make([]placed, len(nodes))
	for i, n := range nodes {
		all[i] = placed{Node: n, place: place(circle, n.ID)}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.ID, b.ID)) })
	in := make(map[string]uint64)
	for i, n := range all {
		all[i].inRack = in[n.Rack]
		in[n.Rack]++
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.inRack, b.inRack), cmp.Compare(place(circle, a.Rack), place(circle, b.Rack)))
	})
	order := make([]Node, len(all))
	for i, one := range all {
		order[i] = one.Node
	}
	return order
}

// place is a number that a node, or a rack, has for a key.
func place(key uint64, name string) uint64 {
	return xxhash.Sum64(append(binary.LittleEndian.AppendUint64(make([]byte, 0, 64), key), name...))
}

// byPreference are the nodes that have room in the order of a key.
func byPreference(key uint64, nodes []Node) []Node {
	type scored struct {
		Node
		score float64
	}
	all := make([]scored, 0, len(nodes))
	for _, n := range nodes {
		if n.Room > 0 {
			all = append(all, scored{n, score(key, n)})
		}
	}
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.ID, b.ID))
	})
	order := make([]Node, len(all))
	for i, one := range all {
		order[i] = one.Node
	}
	return order
}

// score is the room divided by a number that has an exponential distribution over
// keys: the chance of a node to have the largest is its share of the room.
func score(key uint64, n Node) float64 {
	u := (float64(place(key, n.ID)>>11) + 0.5) / (1 << 53)
	return float64(n.Room) / -math.Log(u)
}

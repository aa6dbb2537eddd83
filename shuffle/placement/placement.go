// Package placement answers one question: which nodes keep the copies of a map's output?
//
// The answer follows from the map's key and from the nodes alone, so that it needs no
// table, and a node that joins or leaves moves no more than its own share. Each node
// gets a number for each key, larger for more room, and the largest numbers win:
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

// A Node is one that may keep copies. One that is drained, down, ill or full has no
// Room.
type Node struct {
	ID   string
	Host string
	Rack string // empty if nobody knows
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
	var chosen []Node
	fits := func(c Node, apart bool) bool {
		return !slices.ContainsFunc(chosen, func(has Node) bool {
			return meta.SameHost(has.Host, c.Host) || apart && has.Rack == c.Rack && c.Rack != ""
		})
	}
	order := byPreference(key, nodes)
	if i := slices.IndexFunc(order, func(c Node) bool { return c.ID == first }); i >= 0 {
		chosen = append(chosen, order[i])
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
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 64), key)
	u := (float64(xxhash.Sum64(append(b, n.ID...))>>11) + 0.5) / (1 << 53)
	return float64(n.Room) / -math.Log(u)
}

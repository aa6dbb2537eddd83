package node

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/meta/state"
)

// homes says which node fetches a chunk, for itself and for the others. It is
// one that has the chunk on its own disks, if there is such a one. Where bytes
// come from changes with who is up; what a batch holds does not.
type homes struct {
	self string
	now  atomic.Pointer[members]
}

// members are the nodes, as of one moment: all that fetch chunks, and those that
// can be asked for what they have.
type members struct {
	up     map[string]bool
	all    []state.Node
	byHost meta.Hosts[state.Node]
}

// follow makes homes those that are up.
func (h *homes) follow(nodes []state.Node) {
	m := &members{up: make(map[string]bool)}
	for _, n := range nodes {
		m.up[n.ID] = n.Up
	}
	for _, drained := range []bool{false, true} {
		for _, n := range nodes {
			if (n.Up || n.ID == h.self) && n.Drained == drained {
				m.all = append(m.all, n)
				m.byHost.Add(n.Host, n)
			}
		}
		if len(m.all) > 0 {
			break
		}
	}
	h.now.Store(m)
}

// count is how many nodes fetch chunks.
func (h *homes) count() int { return max(1, len(h.now.Load().all)) }

// up reports whether a node is there to be asked.
func (h *homes) up(id string) bool {
	return h.now.Load().up[id]
}

// host is that of a node, if it fetches chunks.
func (h *homes) host(id string) (host string, ok bool) {
	for _, n := range h.now.Load().all {
		if n.ID == id {
			return n.Host, true
		}
	}
	return "", false
}

// at is the node on a host, if one is up: the first of several.
func (h *homes) at(host string) (id string, ok bool) {
	for _, n := range h.now.Load().byHost.Find(host) {
		if id == "" || n.ID < id {
			id = n.ID
		}
	}
	return id, id != ""
}

// of is the home of a chunk that hosts hold, if no plan says where its readers
// are, or nobody is there. Nodes that agree on who is up agree on it, and when
// one goes the chunks of the others keep theirs: each node draws a number for
// each chunk, and the highest of them has it.
func (h *homes) of(seed uint64, chunk int, hosts []string) string {
	m := h.now.Load()
	if len(m.all) == 1 {
		return m.all[0].ID
	}
	var near []state.Node
	for _, host := range hosts {
		near = append(near, m.byHost.Find(host)...)
	}
	if len(near) == 0 {
		near = m.all
	}
	return slices.MaxFunc(near, func(a, b state.Node) int {
		return cmp.Or(cmp.Compare(draw(a.Host, seed, chunk), draw(b.Host, seed, chunk)), cmp.Compare(a.ID, b.ID))
	}).ID
}

func draw(host string, seed uint64, chunk int) uint64 {
	// Mixing after the sum keeps neighbouring chunks apart.
	x := (xxhash.Sum64String(host) ^ seed) + uint64(chunk)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

package plan

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A Node is one daemon, as far as the ownership of chunks depends on it.
type Node struct {
	ID, Host    string
	Up, Drained bool
}

// Owners says which node fetches a chunk, for itself and for its peers: one that has
// the chunk on its own disks, if there is one.
//
// A chunk always has one owner, and nodes that agree on which nodes are up agree on
// it. When a node goes, the other nodes' chunks keep their owners. Where bytes come
// from changes with the nodes that are up; a batch's content does not.
//
// It may be used concurrently, once Follow was called first.
type Owners struct {
	Self string // the id of this node; set before all else
	now  atomic.Pointer[members]
}

// members are the nodes, as of one moment: all that fetch chunks, and those that
// can be asked for what they have.
type members struct {
	up     map[string]bool
	all    []Node
	byHost meta.Hosts[Node]
}

// Follow makes owners those that are up: of these the ones that are not drained, if
// there are any.
func (o *Owners) Follow(nodes []Node) {
	m := &members{up: make(map[string]bool)}
	for _, n := range nodes {
		m.up[n.ID] = n.Up
	}
	for _, drained := range []bool{false, true} {
		for _, n := range nodes {
			if (n.Up || n.ID == o.Self) && n.Drained == drained {
				m.all = append(m.all, n)
				m.byHost.Add(n.Host, n)
			}
		}
		if len(m.all) > 0 {
			break
		}
	}
	o.now.Store(m)
}

// Count is the number of nodes that fetch chunks.
func (o *Owners) Count() int { return max(1, len(o.now.Load().all)) }

// Up reports whether a node can be asked.
func (o *Owners) Up(id string) bool { return o.now.Load().up[id] }

// Down reports whether a node is one of the cluster that cannot be asked.
func (o *Owners) Down(id string) bool {
	up, known := o.now.Load().up[id]
	return known && !up
}

// Host is the host of a node, if it fetches chunks.
func (o *Owners) Host(id string) (host string, ok bool) {
	for _, n := range o.now.Load().all {
		if n.ID == id {
			return n.Host, true
		}
	}
	return "", false
}

// At is the node on a host, if one is up: of several that with the least id.
func (o *Owners) At(host string) (id string, ok bool) {
	for _, n := range o.now.Load().byHost.Find(host) {
		if id == "" || n.ID < id {
			id = n.ID
		}
	}
	return id, id != ""
}

// Of is the owner of a chunk that hosts hold, where no plan says on which host it
// is read, or no node is up there. Each node draws a number for each chunk, and of
// those that hold it the one with the highest owns it. The seed makes the owners of
// datasets' chunks independent of one another.
func (o *Owners) Of(seed uint64, chunk int, hosts []string) (id string) {
	m := o.now.Load()
	if len(m.all) == 1 {
		return m.all[0].ID
	}
	var near []Node
	for _, host := range hosts {
		near = append(near, m.byHost.Find(host)...)
	}
	if len(near) == 0 {
		near = m.all
	}
	return slices.MaxFunc(near, func(a, b Node) int {
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

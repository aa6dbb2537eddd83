package node

import (
	"maps"
	"slices"

	"rankfs/fetch/index"
	"rankfs/meta/assign"
)

// A near finds out where chunks are, as seen from the hosts of a job's ranks: on
// some of them, beside some of them in a rack, or further away. These hosts are
// its first nodes, by their numbers; behind them, each rack that they are in has a
// node for all its other hosts. It is for one goroutine.
type near struct {
	index  *index.Index
	hosts  *hostNumbers
	rackOf []int32          // of each node, below zero if nobody said; nil if none counts
	racks  map[string]int32 // the numbers of those that count
	nodeOf map[string]int32 // of the names of the index that came up; below zero: too far

	names [][]byte // of the last chunk, and
	nodes []int32  // what they are
}

// newNear is without racks.
func newNear(x *index.Index, hosts *hostNumbers) *near {
	return &near{index: x, hosts: hosts, nodeOf: make(map[string]int32)}
}

// newNearByRack is with those that the index knows.
func newNearByRack(x *index.Index, hosts *hostNumbers) *near {
	n := newNear(x, hosts)
	rackOf := slices.Repeat([]int32{-1}, hosts.len())
	n.racks = make(map[string]int32)
	racks := x.Racks()
	for _, name := range slices.Sorted(maps.Keys(racks)) { // a host may have several names
		host, ok := hosts.find(name)
		if !ok || rackOf[host] >= 0 {
			continue
		}
		number, known := n.racks[racks[name]]
		if !known {
			number = int32(len(n.racks))
			n.racks[racks[name]] = number
		}
		rackOf[host] = number
	}
	if len(n.racks) == 0 {
		return n
	}
	for number := range int32(len(n.racks)) {
		rackOf = append(rackOf, number)
	}
	n.rackOf = rackOf
	return n
}

// rack is that of a host, if it is known.
func (n *near) rack(host int32) string {
	if n.rackOf != nil {
		for name, number := range n.racks {
			if number == n.rackOf[host] {
				return name
			}
		}
	}
	return ""
}

// cluster is what a planner has to know.
func (n *near) cluster(ofRank []int32) assign.Cluster {
	return assign.Cluster{Nodes: n.hosts.len() + len(n.racks), NodeOf: ofRank, RackOf: n.rackOf}
}

// holders are the nodes that hold a chunk, ascending; good until the next call.
func (n *near) holders(chunk int) []int32 {
	n.names, n.nodes = n.index.AppendHosts(n.names[:0], chunk), n.nodes[:0]
	for _, name := range n.names {
		node, known := n.nodeOf[string(name)]
		if !known {
			node = n.find(string(name))
			n.nodeOf[string(name)] = node
		}
		if node >= 0 {
			n.nodes = append(n.nodes, node)
		}
	}
	slices.Sort(n.nodes)
	n.nodes = slices.Compact(n.nodes)
	return n.nodes
}

func (n *near) find(name string) int32 {
	if host, ok := n.hosts.find(name); ok {
		return host
	}
	if rack, ok := n.racks[n.index.Racks()[name]]; ok {
		return int32(n.hosts.len()) + rack
	}
	return -1
}

// distance is how far a host is from what some nodes hold.
func (n *near) distance(holders []int32, host int32) assign.Distance {
	distance := assign.Remote
	for _, node := range holders {
		switch {
		case node == host:
			return assign.Local
		case n.rackOf != nil && n.rackOf[host] >= 0 && n.rackOf[node] == n.rackOf[host]:
			distance = assign.Rack
		}
	}
	return distance
}

// matter reports whether some chunk is nearer to one host than to another. Mostly
// the first one is; where none is, few differ in who holds them.
func (n *near) matter() bool {
	var seen assign.Sets
	for chunk := range n.index.Chunks() {
		holders, before := n.holders(chunk), seen.Len()
		if _, err := seen.Number(holders); err != nil {
			return true
		}
		if seen.Len() == before {
			continue
		}
		for host := range int32(n.hosts.len()) {
			if n.distance(holders, host) != n.distance(holders, 0) {
				return true
			}
		}
	}
	return false
}

package plan

import (
	"maps"
	"slices"

	"rankfs/meta/assign"
)

// Replicas says where chunks are, by the index. It may be used concurrently.
type Replicas interface {
	// Chunks is the number of chunks.
	Chunks() int
	// AppendHosts appends the names of the hosts that hold a chunk; none if they are
	// unknown. The names are valid as long as the index is open, and not to be changed.
	AppendHosts(names [][]byte, chunk int) [][]byte
	// Racks are the racks of hosts, by any of their names; hosts without one are missing.
	Racks() map[string]string
}

// A Topology says how near chunks are to the hosts of a job's ranks: on some of
// them, beside some of them in a rack, or further away.
//
// These hosts are its first nodes, by their numbers; behind them, each rack that
// they are in has a node for all its other hosts. It is for one goroutine.
type Topology struct {
	index  Replicas
	hosts  *Hosts
	rackOf []int32          // of each node, below zero if unknown; nil if none counts
	racks  map[string]int32 // the numbers of those that count
	nodeOf map[string]int32 // of the names of the index that came up; below zero: too far

	names [][]byte // of the last chunk, and
	nodes []int32  // what they are
}

// NewTopology is without racks.
func NewTopology(x Replicas, hosts *Hosts) *Topology {
	return &Topology{index: x, hosts: hosts, nodeOf: make(map[string]int32)}
}

// NewTopologyByRack is with the racks that the index knows.
func NewTopologyByRack(x Replicas, hosts *Hosts) *Topology {
	t := NewTopology(x, hosts)
	rackOf := slices.Repeat([]int32{-1}, hosts.Len())
	t.racks = make(map[string]int32)
	racks := x.Racks()
	for _, name := range slices.Sorted(maps.Keys(racks)) { // a host may have several names
		host, ok := hosts.Find(name)
		if !ok || rackOf[host] >= 0 {
			continue
		}
		number, known := t.racks[racks[name]]
		if !known {
			number = int32(len(t.racks))
			t.racks[racks[name]] = number
		}
		rackOf[host] = number
	}
	if len(t.racks) == 0 {
		return t
	}
	for number := range int32(len(t.racks)) {
		rackOf = append(rackOf, number)
	}
	t.rackOf = rackOf
	return t
}

// Racks is the number of racks that the hosts are in, as far as is known.
func (t *Topology) Racks() int { return len(t.racks) }

// Rack is the rack of a host; empty if it is not known.
func (t *Topology) Rack(host int32) string {
	if t.rackOf != nil {
		for name, number := range t.racks {
			if number == t.rackOf[host] {
				return name
			}
		}
	}
	return ""
}

// Cluster is the input of a planner.
func (t *Topology) Cluster(ofRank []int32) assign.Cluster {
	return assign.Cluster{Nodes: t.hosts.Len() + len(t.racks), NodeOf: ofRank, RackOf: t.rackOf}
}

// Holders are the nodes that hold a chunk, ascending; good until the next call.
func (t *Topology) Holders(chunk int) []int32 {
	t.names, t.nodes = t.index.AppendHosts(t.names[:0], chunk), t.nodes[:0]
	for _, name := range t.names {
		node, known := t.nodeOf[string(name)]
		if !known {
			node = t.find(string(name))
			t.nodeOf[string(name)] = node
		}
		if node >= 0 {
			t.nodes = append(t.nodes, node)
		}
	}
	slices.Sort(t.nodes)
	t.nodes = slices.Compact(t.nodes)
	return t.nodes
}

func (t *Topology) find(name string) int32 {
	if host, ok := t.hosts.Find(name); ok {
		return host
	}
	if rack, ok := t.racks[t.index.Racks()[name]]; ok {
		return int32(t.hosts.Len()) + rack
	}
	return -1
}

// Distance is the distance of a host from what some nodes hold.
func (t *Topology) Distance(holders []int32, host int32) assign.Distance {
	distance := assign.Remote
	for _, node := range holders {
		switch {
		case node == host:
			return assign.Local
		case t.rackOf != nil && t.rackOf[host] >= 0 && t.rackOf[node] == t.rackOf[host]:
			distance = assign.Rack
		}
	}
	return distance
}

// Matters reports whether some chunk is nearer to one host than to another. Mostly
// the first chunk is; where none is, chunks have few different sets of holders.
func (t *Topology) Matters() bool {
	var seen assign.Sets
	for chunk := range t.index.Chunks() {
		holders, before := t.Holders(chunk), seen.Len()
		if _, err := seen.Number(holders); err != nil {
			return true
		}
		if seen.Len() == before {
			continue
		}
		for host := range int32(t.hosts.Len()) {
			if t.Distance(holders, host) != t.Distance(holders, 0) {
				return true
			}
		}
	}
	return false
}

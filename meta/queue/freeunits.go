package queue

import (
	"fmt"
	"slices"

	"rankfs/meta"
	"rankfs/meta/lists"
)

// A Holder is a node that has bytes of a unit.
type Holder struct {
	Node  int
	Bytes int64
}

// Bounds far above any real cluster, so that a wrong number is an error
// rather than an allocation.
const (
	MaxUnits = 1 << 28
	MaxNodes = 1 << 20
	maxEdges = 1 << 30
)

// Values of freeUnits.state. Those between them are how many readers have the unit.
const (
	stateFree = 0
	stateDone = 255
)

// freeUnits know which units are free and where they are. Units with the same
// holders are alike and form a group, so that on a few nodes millions of units
// are a few groups.
//
// A group's units are a run of members, the free ones first. It is listed in
// live, and its edges in the live lists of their nodes, while it has free ones.
type freeUnits struct {
	state   []uint8 // by unit
	group   []int32 // by unit
	place   []int32 // by unit: its index in members
	members []int32
	groups  []group // one more than there are: the last only ends the one before
	edges   []edge
	nodes   []node
	live    []int32 // groups with free units
	nowhere int32   // the group that no node holds, or -1
	largest int     // most units of one group
	free    int     // units
	undone  int     // units
}

// A group is the units with the same holders.
type group struct {
	member int32 // its first in members
	free   int32
	edge   int32 // its first in edges
	live   int32 // its index in freeUnits.live
}

// An edge says that a node holds the units of a group.
type edge struct {
	group int32
	node  int32
	live  int32 // its index in node.live
}

// A node has the edges to groups of which it holds free units.
type node struct {
	live []int32 // edges
	here int     // free units that the node holds
	sole int32   // the group that only this node holds, or -1
}

// newFreeUnits asks for the holders of each unit once, in order. What is returned
// is not kept and may be used again.
func newFreeUnits(units int, holders func(unit int) []Holder) (*freeUnits, error) {
	if units < 0 || units > MaxUnits {
		return nil, fmt.Errorf("queue of %d batches %w: at most %d", units, meta.ErrInvalid, MaxUnits)
	}
	p := &freeUnits{state: make([]uint8, units), group: make([]int32, units), nowhere: -1}
	var sets holderSets
	var nodes []int32
	for unit := range units {
		var err error
		if nodes, err = worthGoingTo(holders(unit), nodes[:0]); err != nil {
			return nil, fmt.Errorf("unit %d: %w", unit, err)
		}
		if p.group[unit], err = sets.count(nodes); err != nil {
			return nil, err
		}
		if len(sets.Items()) > maxEdges {
			return nil, fmt.Errorf("more than %d holders %w", maxEdges, meta.ErrInvalid)
		}
	}
	p.connect(&sets)
	p.enlist(&sets)
	p.reset()
	return p, nil
}

// holderSets are the sets of nodes in ascending order, and how many units each has.
type holderSets struct {
	lists.Table
	size []int32
}

func (h *holderSets) count(nodes []int32) (int32, error) {
	set, err := h.Number(nodes)
	if err != nil {
		return 0, err
	}
	if int(set) == len(h.size) {
		h.size = append(h.size, 0)
	}
	h.size[set]++
	return set, nil
}

// worthGoingTo is the nodes that have the most bytes of a unit, or nearly so:
// a unit is read whole, and its smaller parts come over the network anyway.
func worthGoingTo(holders []Holder, into []int32) ([]int32, error) {
	most := int64(1)
	for _, h := range holders {
		if h.Node < 0 || h.Node >= MaxNodes || h.Bytes < 0 {
			return nil, fmt.Errorf("holder %+v %w", h, meta.ErrInvalid)
		}
		most = max(most, h.Bytes)
	}
	for _, h := range holders {
		if h.Bytes >= most-most/4 {
			into = append(into, int32(h.Node))
		}
	}
	slices.Sort(into)
	return slices.Compact(into), nil
}

// connect makes the groups, edges and nodes. Lists are filled from the back,
// and taken from there, so that units go out in their own order at first.
func (p *freeUnits) connect(sets *holderSets) {
	nodes := sets.Items()
	p.groups = make([]group, sets.Len()+1)
	p.edges = make([]edge, len(nodes))
	for g := range sets.Len() {
		from, to := sets.Bounds(int32(g))
		p.groups[g].edge, p.groups[g+1].edge = from, to
		for e := from; e < to; e++ {
			p.edges[e] = edge{group: int32(g), node: nodes[e]}
			p.grow(int(nodes[e]))
		}
		switch to - from {
		case 0:
			p.nowhere = int32(g)
		case 1:
			p.nodes[nodes[from]].sole = int32(g)
		}
	}
}

// grow makes sure that there is a node k.
func (p *freeUnits) grow(k int) {
	for len(p.nodes) <= k {
		p.nodes = append(p.nodes, node{sole: -1})
	}
}

// enlist gives each group its run of members.
func (p *freeUnits) enlist(sets *holderSets) {
	p.place = make([]int32, len(p.group))
	p.members = make([]int32, len(p.group))
	next := int32(0)
	for g, size := range sets.size {
		p.groups[g].member = next
		p.largest = max(p.largest, int(size))
		next += size
	}
	p.groups[len(sets.size)].member = next
}

// reset makes all units free.
func (p *freeUnits) reset() {
	clear(p.state)
	p.free, p.undone = len(p.group), len(p.group)
	p.live = p.live[:0]
	for k := range p.nodes {
		p.nodes[k].live, p.nodes[k].here = p.nodes[k].live[:0], 0
	}
	for g := range p.groups {
		p.groups[g].free = 0
	}
	for unit := len(p.group) - 1; unit >= 0; unit-- {
		g := &p.groups[p.group[unit]]
		p.set(g.member+g.free, int32(unit))
		g.free++
	}
	for g := len(p.groups) - 2; g >= 0; g-- {
		p.list(int32(g))
		for _, e := range p.of(int32(g)) {
			p.nodes[e.node].here += int(p.groups[g].free)
		}
	}
}

func (p *freeUnits) set(at, unit int32) {
	p.members[at], p.place[unit] = unit, at
}

// of is the edges of a group.
func (p *freeUnits) of(g int32) []edge {
	return p.edges[p.groups[g].edge:p.groups[g+1].edge]
}

// edgeTo finds the edge of a group to a node, or -1.
func (p *freeUnits) edgeTo(g int32, k int) int32 {
	for i, e := range p.of(g) {
		if int(e.node) == k {
			return p.groups[g].edge + int32(i)
		}
	}
	return -1
}

// holds says whether a node holds a unit.
func (p *freeUnits) holds(k, unit int) bool {
	return p.edgeTo(p.group[unit], k) >= 0
}

// next is the free unit of a group that is to go first.
func (p *freeUnits) next(g int32) int {
	return int(p.members[p.groups[g].member+p.groups[g].free-1])
}

// take makes a free unit no longer free.
func (p *freeUnits) take(unit int) {
	id := p.group[unit]
	g := &p.groups[id]
	g.free--
	p.free--
	p.swap(int32(unit), g.member+g.free)
	for _, e := range p.of(id) {
		p.nodes[e.node].here--
	}
	if g.free == 0 {
		p.unlist(id)
	}
}

// put makes it free again.
func (p *freeUnits) put(unit int) {
	id := p.group[unit]
	g := &p.groups[id]
	p.swap(int32(unit), g.member+g.free)
	g.free++
	p.free++
	for _, e := range p.of(id) {
		p.nodes[e.node].here++
	}
	if g.free == 1 {
		p.list(id)
	}
}

// finish makes a unit that is not free done.
func (p *freeUnits) finish(unit int) {
	p.state[unit] = stateDone
	p.undone--
}

func (p *freeUnits) swap(unit, at int32) {
	from, other := p.place[unit], p.members[at]
	p.set(at, unit)
	p.set(from, other)
}

func (p *freeUnits) list(id int32) {
	g := &p.groups[id]
	g.live = int32(len(p.live))
	p.live = append(p.live, id)
	for e := g.edge; e < p.groups[id+1].edge; e++ {
		n := &p.nodes[p.edges[e].node]
		p.edges[e].live = int32(len(n.live))
		n.live = append(n.live, e)
	}
}

func (p *freeUnits) unlist(id int32) {
	g := &p.groups[id]
	last := p.live[len(p.live)-1]
	p.live[g.live], p.groups[last].live = last, g.live
	p.live = p.live[:len(p.live)-1]
	for _, e := range p.of(id) {
		n := &p.nodes[e.node]
		last := n.live[len(n.live)-1]
		n.live[e.live], p.edges[last].live = last, e.live
		n.live = n.live[:len(n.live)-1]
	}
}

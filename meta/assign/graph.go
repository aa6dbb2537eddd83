package assign

import (
	"fmt"
	"slices"

	"rankfs/meta"
)

// A graph is a transport problem and the flow found so far. On the left are
// groups of positions that the same targets may read; on the right are nodes,
// each with room for some positions, and racks, which pass on to their nodes
// what they get. An arc carries any number of positions.
type graph struct {
	left  []int32 // by group: positions that no target reads yet
	first []int32 // group x has the arcs first[x] to first[x+1]
	to    []int32 // by arc: its target, ascending within a group
	from  []int32 // by arc: its group
	flow  []int32 // by arc
	into  table   // by target: arcs, ascending

	nodes   int32
	room    []int32 // by node: positions that it can take yet
	viaRack []int32 // by node: positions that it reads since its rack holds them
	rackOf  []int32 // by node
	racks   table   // the nodes of each rack

	waiting int64 // the sum of left over groups that have arcs
	search
}

// maxArcs bounds a graph's memory: some 20 bytes for each arc.
const maxArcs = 1 << 27

// reset makes g a graph of so many nodes that have no room, to which so many
// groups with so many arcs in all are added next.
func (g *graph) reset(groups, arcs, nodes int, racks table) error {
	if arcs > maxArcs {
		return fmt.Errorf("dividing by locality %w: %d groups of positions have %d holders, use assign=strict", meta.ErrInvalid, groups, arcs)
	}
	g.left, g.first = sized(g.left, groups)[:0], append(sized(g.first, groups+1)[:0], 0)
	g.to, g.from = sized(g.to, arcs)[:0], sized(g.from, arcs)[:0]
	g.nodes, g.racks = int32(nodes), racks
	g.room = fill(sized(g.room, nodes), 0)
	g.viaRack = fill(sized(g.viaRack, nodes), 0)
	g.waiting = 0
	return nil
}

// addGroup adds the next group, of n positions.
func (g *graph) addGroup(n int32, targets []int32) {
	x := int32(len(g.left))
	g.left = append(g.left, n)
	g.to = append(g.to, targets...)
	for range targets {
		g.from = append(g.from, x)
	}
	g.first = append(g.first, int32(len(g.to)))
	if len(targets) > 0 {
		g.waiting += int64(n)
	}
}

// ready ends the adding of groups.
func (g *graph) ready() {
	g.flow = fill(sized(g.flow, len(g.to)), 0)
	targets := int(g.nodes) + g.rackCount()
	start := fill(sized(g.into.start, targets+1), 0)
	for _, t := range g.to {
		start[t+1]++
	}
	for t := range targets {
		start[t+1] += start[t]
	}
	list := sized(g.into.list, len(g.to))
	next := append(g.targetNext[:0], start[:targets]...)
	for a, t := range g.to {
		list[next[t]] = int32(a)
		next[t]++
	}
	g.targetNext, g.into = next, table{start, list}
	g.search.reset(len(g.left), targets)
}

func (g *graph) rackCount() int { return max(len(g.racks.start), 1) - 1 }

// arc returns the arc from group x to target t, or -1.
func (g *graph) arc(x, t int32) int32 {
	first, targets := g.first[x], g.to[g.first[x]:g.first[x+1]]
	if len(targets) > 16 {
		if i, found := slices.BinarySearch(targets, t); found {
			return first + int32(i)
		}
		return -1
	}
	for i, to := range targets {
		if to == t {
			return first + int32(i)
		}
	}
	return -1
}

// send adds n positions to an arc to a node.
func (g *graph) send(a, n int32) {
	g.flow[a] += n
	g.left[g.from[a]] -= n
	g.room[g.to[a]] -= n
	g.waiting -= int64(n)
}

// greedy sends what it can without taking anything back. Groups that have one
// holder go first: they have no choice, and where all groups are such, the
// result is a maximum already. The others fill the holder that has most room.
func (g *graph) greedy() (choice bool) {
	for x := range int32(len(g.left)) {
		if g.left[x] == 0 || g.first[x+1]-g.first[x] != 1 || g.to[g.first[x]] >= g.nodes {
			continue
		}
		a := g.first[x]
		if n := min(g.left[x], g.room[g.to[a]]); n > 0 {
			g.send(a, n)
		}
	}
	for x := range int32(len(g.left)) {
		for g.left[x] > 0 {
			a := g.roomiest(x)
			if a < 0 || g.room[g.to[a]] == 0 {
				break
			}
			g.send(a, min(g.left[x], g.room[g.to[a]]))
		}
		choice = choice || g.first[x+1]-g.first[x] > 1
	}
	return choice
}

// roomiest returns the arc from x to the node that has most room, or -1.
func (g *graph) roomiest(x int32) int32 {
	best, most := int32(-1), int32(-1)
	for a := g.first[x]; a < g.first[x+1] && g.to[a] < g.nodes; a++ {
		if n := g.room[g.to[a]]; n > most {
			best, most = a, n
		}
	}
	return best
}

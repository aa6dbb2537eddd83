package assign

import (
	"fmt"
	"slices"

	"rankfs/meta"
)

// Serve says from which node each position comes, of which node reader[i] reads
// the one that set of[i] holds, however they were divided. What is not local is served
// by its holders, of the reader's rack if there are any, so that the busiest node
// serves as little as can be. A position that the reader's own node holds comes from that
// one, and of what no node is known to hold the node is -1.
//
// That does not decide which node reads a position: a chunk more that crosses the
// network costs each node's links, a server that is busy only its own.
func (p *Planner) Serve(reader, of []int32) (from []int32, err error) {
	if err := p.checkService(reader, of); err != nil {
		return nil, err
	}
	from = make([]int32, len(of))
	var far []int32 // positions
	for i, node := range reader {
		holders := p.sets.At(of[i])
		switch from[i] = -1; {
		case slices.Contains(holders, node):
			from[i] = node
		case len(holders) > 0:
			far = append(far, int32(i))
		}
	}
	if len(far) == 0 {
		return from, nil
	}
	g, err := p.servers(far, reader, of)
	if err != nil {
		return nil, err
	}
	g.spread()
	for i, position := range far {
		a := g.first[i]
		for g.flow[a] == 0 {
			a++
		}
		from[position] = g.to[a]
	}
	return from, nil
}

func (p *Planner) checkService(reader, of []int32) error {
	if len(reader) != len(of) {
		return fmt.Errorf("list of readers of %d positions with holders of %d %w: give as many", len(reader), len(of), meta.ErrInvalid)
	}
	for i, node := range reader {
		if node < 0 || int(node) >= len(p.inner) {
			return fmt.Errorf("reader %d of position %d %w: there are %d nodes", node, i, meta.ErrInvalid, len(p.inner))
		}
	}
	return p.checkSets(of)
}

// servers is the graph of the nodes that may serve each of some positions.
func (p *Planner) servers(far, reader, of []int32) (*graph, error) {
	arcs := 0
	for _, position := range far {
		arcs += len(p.sets.At(of[position]))
	}
	g := &graph{}
	if err := g.reset(len(far), arcs, len(p.inner), table{}); err != nil {
		return nil, err
	}
	var near, nodes []int32
	for _, position := range far {
		nodes = distinct(append(nodes[:0], p.sets.At(of[position])...))
		near = near[:0]
		rack := p.innerRack[reader[position]]
		for _, node := range nodes {
			if rack >= 0 && p.innerRack[node] == rack {
				near = append(near, node)
			}
		}
		if len(near) == 0 {
			near = append(near, nodes...)
		}
		g.addGroup(1, near)
	}
	g.ready()
	return g, nil
}

// spread sends everything, giving all nodes as much room as it takes, and no more.
//
// When no more can be sent, what the groups that are left can reach is full,
// and has to take that much more in any case: an even share of it, rounded up,
// is a lower bound of what is missing. So no step goes too far.
func (g *graph) spread() {
	g.greedy()
	for g.augment(); g.waiting > 0; g.augment() {
		reached := int64(0)
		for _, level := range g.targetLevel {
			if level >= 0 {
				reached++
			}
		}
		more := int32((g.waiting + reached - 1) / reached)
		for node := range g.room {
			g.room[node] += more
		}
	}
}

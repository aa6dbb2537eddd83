package assign

import (
	"fmt"
	"slices"

	"rankfs/meta"
)

// A Service says who serves what.
type Service struct {
	// From is, by position, the node that it is read from: the reader's own if
	// that holds it, -1 if nobody is known to.
	From []int32
	// Over is how much more than its capacity every node has to serve at most,
	// since the capacities together could not serve all that is not local.
	Over int32
}

// Serve says from which node each position comes, of which node reader[i] reads
// the one that set of[i] holds, whoever divided them. What is not local is served
// by its holders, of the reader's rack if there are any: node j serves at most
// capacity[j]. If that cannot be, all serve Over more, the least number that is
// enough. Without capacity nobody has any, so Over is what the busiest node serves,
// and as little as can be.
//
// Capacity does not decide who reads what: a chunk more that crosses the network
// costs each node's links, a server that is busy only its own.
func (p *Planner) Serve(reader, of, capacity []int32) (Service, error) {
	if err := p.checkService(reader, of, capacity); err != nil {
		return Service{}, err
	}
	s := Service{From: make([]int32, len(of))}
	var far []int32 // positions
	for i, node := range reader {
		holders := p.sets.At(of[i])
		switch s.From[i] = -1; {
		case slices.Contains(holders, node):
			s.From[i] = node
		case len(holders) > 0:
			far = append(far, int32(i))
		}
	}
	if len(far) == 0 {
		return s, nil
	}
	g, err := p.servers(far, reader, of, capacity)
	if err != nil {
		return Service{}, err
	}
	s.Over = g.overload()
	for i, position := range far {
		a := g.first[i]
		for g.flow[a] == 0 {
			a++
		}
		s.From[position] = g.to[a]
	}
	return s, nil
}

func (p *Planner) checkService(reader, of, capacity []int32) error {
	if len(reader) != len(of) || capacity != nil && len(capacity) != len(p.inner) {
		return fmt.Errorf("readers of %d positions, holders of %d, capacities of %d nodes %w: there are %d nodes",
			len(reader), len(of), len(capacity), meta.ErrInvalid, len(p.inner))
	}
	for i, node := range reader {
		if node < 0 || int(node) >= len(p.inner) {
			return fmt.Errorf("reader %d of position %d %w: there are %d nodes", node, i, meta.ErrInvalid, len(p.inner))
		}
	}
	for node, n := range capacity {
		if n < 0 {
			return fmt.Errorf("serving capacity %d of node %d %w: use 0 or more", n, node, meta.ErrInvalid)
		}
	}
	return p.checkSets(of)
}

// servers is the graph of the nodes that may serve each of some positions.
func (p *Planner) servers(far, reader, of, capacity []int32) (*graph, error) {
	arcs := 0
	for _, position := range far {
		arcs += len(p.sets.At(of[position]))
	}
	g := &graph{}
	if err := g.reset(len(far), arcs, len(p.inner), table{}); err != nil {
		return nil, err
	}
	copy(g.room, capacity)
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

// overload sends everything, giving all nodes as much more room as it takes.
//
// When no more can be sent, what the groups that are left can reach is full,
// and has to take that much more in any case: an even share of it, rounded up,
// is a lower bound of what is missing. So no step goes too far.
func (g *graph) overload() (over int32) {
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
		over += more
	}
	return over
}
